# A file from a European spreadsheet: semicolons, decimal commas, thousands with points, percent and currency signs.
python -c "
import random
random.seed(1)
print('price;discount;rating;sold')
for row in range(1000):
    cents = random.randrange(90000, 250000)
    discount, rating = random.randrange(0, 50), random.randrange(10, 50) / 10
    sold = 'yes' if rating + discount / 20 > 4 else 'no'
    price = f'{cents // 100:,}'.replace(',', '.') + f',{cents % 100:02} €'
    print(f'{price};{discount} %;' + f'{rating}'.replace('.', ',') + f';{sold}')
" > sales.csv
everytree fit sales.csv --family chow-liu
everytree query sales.everytree --given 'rating>4' --given 'discount in 20..50' --target sold --data sales.csv
everytree inspect sales.everytree

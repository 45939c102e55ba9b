# Tables to test with are never as clean as those that were learned from: missing cells, and labels nobody has seen.
python -c "
import random
random.seed(1)
def table(path, rows, colours, gaps):
    with open(path, 'w') as out:
        print('colour,size,weight', file=out)
        for _ in range(rows):
            size = random.choice(['small', 'large'])
            colour = random.choice(colours)
            weight = random.choice(['light', 'heavy']) if random.random() < 0.2 else {'small': 'light'}.get(size, 'heavy')
            print(','.join('' if random.random() < gaps else cell for cell in (colour, size, weight)), file=out)
table('train.csv', 500, ['red', 'green'], 0)
table('test.csv', 200, ['red', 'green', 'violet'], 0.1)
"
everytree fit train.csv --test test.csv --unknown unobserved
everytree score train.everytree test.csv --unknown unobserved --summary
everytree impute train.everytree test.csv --unknown unobserved --out filled.csv

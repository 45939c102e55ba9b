# Handwritten digits as 64 pixels that are on or off: guess the digit from the upper half.
python -c "
from sklearn.datasets import load_digits
digits = load_digits(as_frame=True)
pixels = (digits.data > 7).astype(int)
pixels.columns = [f'p{place // 8}{place % 8}' for place in range(64)]
pixels.assign(digit=digits.target).to_csv('digits.csv', index=False)
"
everytree fit digits.csv --family chow-liu
everytree inspect digits.everytree --top 5
everytree query digits.everytree --given 'digit=8' --target p33
everytree sample digits.everytree -n 5 --given 'digit=3' --out threes.csv

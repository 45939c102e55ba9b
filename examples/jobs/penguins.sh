# Penguins: labels, measurements, missing cells, and a year that is of no interest.
python -c "import palmerpenguins; palmerpenguins.load_penguins().to_csv('penguins.csv', index=False)"
everytree fit penguins.csv --drop year --bins 8 --family directed
everytree query penguins.everytree --given 'flipper_length_mm in 205..230' --target species --data penguins.csv
everytree query penguins.everytree --given 'species in {Adelie, Chinstrap}' --given 'sex!=male' --target body_mass_g
everytree impute penguins.everytree penguins.csv --out whole.csv

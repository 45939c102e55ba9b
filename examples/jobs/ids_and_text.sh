# A table with identifiers, free text, and jobs of which most are rare.
python -c "
import random
random.seed(1)
print('id,comment,job,smoker,cough')
for row in range(2000):
    job = random.choices(['nurse', 'cook', 'smith', f'job {random.randrange(300)}'], [5, 4, 3, 4])[0]
    smoker = random.random() < (0.5 if job == 'cook' else 0.2)
    cough = random.random() < (0.6 if smoker else 0.1)
    print(f'p{row:04},\"said so, row {row}\",{job},{smoker},{cough}')
" > people.csv
everytree fit people.csv --id id --drop comment --other 20
everytree score people.everytree people.csv --out scores.csv
everytree query people.everytree --given 'job=cook' --target smoker --data people.csv
everytree sample people.everytree -n 5

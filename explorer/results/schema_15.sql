-- Schema 15: the granularity of runs of launches is 'segment', until now 'auto', which is a clock's word too.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, '''auto''', '''segment''')
WHERE type = 'table' AND name IN ('plans', 'graph_plans');
PRAGMA writable_schema = RESET;
UPDATE plans SET granularity = 'segment' WHERE granularity = 'auto';
UPDATE graph_plans SET granularity = 'segment' WHERE granularity = 'auto';
UPDATE verifications SET granularity = 'segment' WHERE granularity = 'auto';

CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value AS (printf('%.*c', 900000000, 'x')));
INSERT INTO StringIds (id) VALUES (1), (2), (3), (4), (5), (6);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId, demangledName, gridX, gridY, gridZ, blockX, blockY, blockZ);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 2, 0, 7, 1, 2, 1, 1, 32, 1, 1);

CREATE TABLE StringIds (id INT, value TEXT);
INSERT INTO StringIds VALUES (NULL, 'k');
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId, demangledName, gridX, gridY, gridZ, blockX, blockY, blockZ);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 2, 0, 7, NULL, 2, 1, 1, 32, 1, 1);

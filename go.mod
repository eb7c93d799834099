module example.org/auditd

go 1.26

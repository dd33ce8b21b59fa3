module differ

go 1.24

require toolgate v0.0.0

replace toolgate => ../../sdk/go

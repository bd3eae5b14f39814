module github.com/b1cc2673/bloom/examples/database

go 1.26.0

replace github.com/b1cc2673/bloom => ../..

require (
	github.com/b1cc2673/bloom v0.0.0-00010101000000-000000000000
	go.etcd.io/bbolt v1.5.0
)

require golang.org/x/sys v0.50.0 // indirect

// Package rights asks every door of the API for every right: each kind and verb of
// the table of rights (coordinator/service), as each role, about the objects of the own
// tenant and of another one, over REST, gRPC, the SDK and the command line.
//
// The expected answers are in testdata/answers.txt, for people to read. The table of
// rights makes them (answers_test.go), and a test compares the file with the table;
// after a change of the table `go test ./test/rights -args -rewrite` writes the file
// again, and the difference shows which role has got or lost which right.
package rights

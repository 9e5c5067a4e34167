// Package kept holds that no test and no planted mistake of commit 3eb49563 was
// lost when tests became cheaper. It decides, from names alone, whether each of
// them is still there: testdata/tests.txt and testdata/mutants.txt name all of
// that commit and never change; testdata/replaced.txt has a record for each that
// is gone on purpose, with its replacement. It does not decide whether a test of
// the same name still holds the same rule, and it runs no test.
//
// The names of today come from the source, not from `go test -list`, which would
// compile every package. Nested modules and files of other platforms count too.
package kept

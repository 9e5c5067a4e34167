package bitset_test

import (
	"fmt"

	"github.com/musterd/muster/resource/bitset"
)

// The CPUs left for work are those that are online and not kept for the system.
func Example() {
	online, err := bitset.Parse("0-15,32-47\n")
	if err != nil {
		fmt.Println(err)
		return
	}
	kept := bitset.Of(0, 32)
	free := online.Minus(kept)
	fmt.Println(free, free.Len(), free.Min())

	_, err = bitset.Parse("0-3,7-5")
	fmt.Println(err)
	// Output:
	// 1-15,33-47 30 1
	// list element "7-5" at offset 4: range ends at 5 before it starts at 7
}

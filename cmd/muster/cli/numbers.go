package cli

import (
	"fmt"
	"math"
	"strconv"
)

// limit is a flag for a number of objects, 0 for all.
type limit int

func (l *limit) String() string { return strconv.Itoa(int(*l)) }

// Type implements pflag.Value.
func (l *limit) Type() string { return "int" }

// Set implements pflag.Value.
func (l *limit) Set(text string) error {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt32 {
		return fmt.Errorf("want 0 (all) to %d", math.MaxInt32)
	}
	*l = limit(n)
	return nil
}

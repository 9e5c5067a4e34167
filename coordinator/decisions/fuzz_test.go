package decisions_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/musterd/muster/coordinator/decisions"
)

// FuzzDecode: what is accepted is encoded again to what is read as the same,
// and nothing makes a checker panic. Both formats are read.
func FuzzDecode(f *testing.F) {
	f.Fuzz(func(t *testing.T, text []byte) {
		for version := 1; version <= decisions.Version; version++ {
			c := decisions.NewChecker()
			c.Follow("ns/u1")
			c.File("fuzz")
			c.Line(fmt.Appendf(nil, "{\"format\":\"muster-decisions\",\"version\":%d}\n", version))
			for line := range bytes.Lines(text) {
				c.Line(line)
				r, err := decisions.Decode(version, bytes.TrimSuffix(line, []byte("\n")))
				if err != nil {
					continue
				}
				again := decisions.Encode(r)
				back, err := decisions.Decode(version, bytes.TrimSuffix(again, []byte("\n")))
				if err != nil {
					t.Fatalf("%s is accepted, its encoding %s is not: %v", line, again, err)
				}
				if twice := decisions.Encode(back); !bytes.Equal(again, twice) {
					t.Fatalf("%s becomes %s, then %s", line, again, twice)
				}
			}
		}
	})
}

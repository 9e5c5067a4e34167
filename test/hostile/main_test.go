package hostile

import (
	"flag"
	"os"
	"testing"

	"github.com/musterd/muster/test/cluster"
	"github.com/musterd/muster/test/hostile/evil"
)

// The flags of `make hostile`; the defaults are the short round of `make test`.
var (
	long    = flag.Bool("hostile.long", false, "run every case, at full size, and compare latencies")
	every   = flag.Bool("hostile.all", false, "run every case, at the size of the short round")
	proof   = flag.Bool("hostile.pending", false, "run the pending cases alone and report the harm that they do")
	only    = flag.String("hostile.rows", "", "the rows to run, such as S1,S7; \"\" is all of them")
	results = flag.String("hostile.results", "", "the folder for results.md and results.json; \"\" is the test's own")
)

func TestMain(m *testing.M) {
	if os.Getenv(evil.Variable) != "" { // this program is an attacker
		os.Exit(evil.Main())
	}
	// One attack on each of the two clusters at a time.
	if err := flag.Set("test.parallel", "2"); err != nil {
		panic(err)
	}
	os.Exit(cluster.Main(m))
}

// Command house measures how the code is arranged: the lines of packages, the
// methods of types, the files that call each other in a circle, and the files
// that write one struct. `make house` prints a table to hold beside that of an
// earlier commit.
//
// It judges nothing: test/layers does.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

func main() {
	root := flag.String("root", ".", "the module's folder")
	most := flag.Int("n", 5, "rows of each figure")
	timed := flag.Bool("time", false, "time `go test -short -count=1 ./coordinator/...` too")
	flag.Parse()
	if err := run(os.Stdout, *root, *most, *timed); err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, root string, most int, timed bool) error {
	all, err := load(root)
	if err != nil {
		return err
	}
	var product, tests []*code
	for _, s := range all {
		if strings.HasPrefix(s.path, "test/") {
			tests = append(tests, s)
		} else if !strings.HasPrefix(s.path, "proto/") {
			product = append(product, s)
		}
	}
	fmt.Fprintln(out, "| figure | value | where | |")
	fmt.Fprintln(out, "|---|---|---|---|")
	rows := func(name string, figures []figure) {
		for _, f := range greatest(figures, most) {
			fmt.Fprintf(out, "| %s | %d | %s | %s |\n", name, f.value, f.of, f.note)
		}
	}
	rows("lines of a package", packageLines(product))
	rows("methods of a type", methodsPerType(product))
	rows("files in one circle of calls", circles(product))
	rows("files that write one struct", writersPerStruct(product))
	rows("lines of a package of tests", packageLines(tests))
	if timed {
		began := time.Now()
		cmd := exec.Command("go", "test", "-short", "-count=1", "./coordinator/...")
		cmd.Dir = root
		if text, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("go test -short ./coordinator/...: %w\n%s", err, text)
		}
		fmt.Fprintf(out, "| seconds of `go test -short ./coordinator/...` | %.0f | | |\n", time.Since(began).Seconds())
	}
	return nil
}

// plural is "1 file" or "2 files".
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

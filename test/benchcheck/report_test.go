package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var rewrite = flag.Bool("rewrite", false, "write testdata/report.txt")

func TestTheReport(t *testing.T) {
	rows := mustParse(t, sample).rows
	got := results{
		"BenchmarkReserve/GPU":        {"ns/op": {1000, 900, 1100}},
		"BenchmarkReplay":             {"ns/op": {5e6}},
		"BenchmarkAllocate/clients=1": {"p50-ms": {0.9}, "allocations/s": {700}},
	}
	all := []outcome{judge(rows[0], got, "", false), judge(rows[1], got, "", false), judge(rows[2], got, "", false), judge(rows[3], got, "the time is over", false)}
	var b bytes.Buffer
	off, failed := write(&b, all)
	if off != 1 || failed != 1 {
		t.Errorf("%d figures are off and %d rows have failed, want 1 and 1", off, failed)
	}
	name := filepath.Join("testdata", "report.txt")
	if *rewrite {
		if err := os.WriteFile(name, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("read the change, then go test ./test/benchcheck -args -rewrite:\n%s", diff)
	}
}

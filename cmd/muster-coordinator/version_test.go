package main

import (
	"bytes"
	"testing"

	"github.com/musterd/muster/test/manualtest"
)

func TestVersionIsWrittenAsByAllPrograms(t *testing.T) {
	manualtest.Version(t, "muster-coordinator", func(args ...string) (int, string, string) {
		var out, problems bytes.Buffer
		code := program{args: args, stdout: &out, stderr: &problems}.run(t.Context())
		return code, out.String(), problems.String()
	})
}

package main

import (
	"bytes"
	"testing"

	"github.com/musterd/muster/test/manualtest"
)

func TestVersionIsWrittenAsByAllPrograms(t *testing.T) {
	manualtest.Version(t, "muster-agent", func(args ...string) (int, string, string) {
		var out, problems bytes.Buffer
		code := Run(t.Context(), args, &out, &problems)
		return code, out.String(), problems.String()
	})
}

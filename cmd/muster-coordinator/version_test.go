package main

import (
	"bytes"
	"testing"

	"github.com/musterd/muster/cmd/buildinfo"
)

func TestVersionIsWrittenAsByAllPrograms(t *testing.T) {
	var out, errors bytes.Buffer
	code := program{args: []string{"--version"}, stdout: &out, stderr: &errors}.run(t.Context())
	if want := "muster-coordinator " + buildinfo.Version() + "\n"; code != exitDone || out.String() != want || errors.Len() > 0 {
		t.Errorf("exit %d, %q and %q; want %q", code, out.String(), errors.String(), want)
	}
}

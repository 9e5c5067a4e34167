package report

import (
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	const pass = `{"Action":"pass","Package":"p","Test":"A"}` + "\n"
	const skip = `{"Action":"output","Package":"p","Test":"B","Output":"    b_test.go:3: no etcd\n"}` + "\n" + `{"Action":"skip","Package":"p","Test":"B"}` + "\n"
	cases := map[string]struct {
		input    string
		strict   bool
		wantCode int
		wantText string
	}{
		"output that is not JSON is printed": {input: "go: downloading x\n" + pass, wantText: "go: downloading x\n"},
		"a panic prints the output of the test that did not end": {
			input: `{"Action":"output","Package":"p","Test":"P","Output":"panic: boom\n"}` + "\n" + `{"Action":"fail","Package":"p"}`, wantCode: 1, wantText: "panic: boom\nfail  p",
		},
		"the cost of a package stands in its line": {
			input: pass + `{"Action":"output","Package":"p","Output":"muster-test: cpu 12.50s\n"}` + "\n" + `{"Action":"pass","Package":"p","Elapsed":3}`, wantText: "pass  p 3.0s, cpu 12.5s\n",
		},
		"a cached package says so, with its cost": {
			input:    pass + `{"Action":"output","Package":"p","Output":"muster-test: cpu 12.50s\n"}` + "\n" + `{"Action":"output","Package":"p","Output":"ok  \tp\t(cached)\n"}` + "\n" + `{"Action":"pass","Package":"p"}`,
			wantText: "pass  p 0.0s, cpu 12.5s (cached)\n",
		},
		"all passed":                      {input: pass, wantText: "1 passed, 0 failed, 0 skipped"},
		"a failure prints its output":     {input: `{"Action":"output","Package":"p","Test":"F","Output":"boom\n"}` + "\n" + `{"Action":"fail","Package":"p","Test":"F"}`, wantCode: 1, wantText: "boom"},
		"a build error is a failure":      {input: pass + `{"Action":"build-fail","ImportPath":"p"}`, wantCode: 1, wantText: "1 failed"},
		"no test at all is a failure":     {input: ``, wantCode: 1, wantText: "0 passed"},
		"a skip is named with its reason": {input: pass + skip, wantText: "skipped p B: b_test.go:3: no etcd"},
		"a skip for want of rights is expected": {
			input: pass + strings.ReplaceAll(skip, "no etcd", "not permitted here: mount"), strict: true, wantText: "1 passed, 0 failed, 1 skipped",
		},
		"a skip for want of reference material is expected": {
			input: pass + strings.ReplaceAll(skip, "no etcd", "no reference material: ../shared is absent"), strict: true, wantText: "1 passed, 0 failed, 1 skipped",
		},
		"a skip for another compilation is expected": {
			input: pass + strings.ReplaceAll(skip, "no etcd", "not counted here: the race detector"), strict: true, wantText: "1 passed, 0 failed, 1 skipped",
		},
		"a skip that leaves the test to make test-long is expected": {
			input: pass + strings.ReplaceAll(skip, "no etcd", "in test-long: 20,000 seeds"), strict: true,
			wantText: "1 of the skipped tests are left to make test-long\n1 passed, 0 failed, 1 skipped",
		},
		"a skip fails under CI": {input: pass + skip, strict: true, wantCode: 1, wantText: "CI=true"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			r := New(&out, c.strict)
			for line := range strings.Lines(c.input) {
				r.Take([]byte(strings.TrimSuffix(line, "\n")))
			}
			if code := r.End(); code != c.wantCode {
				t.Errorf("exit code %d, want %d", code, c.wantCode)
			}
			if !strings.Contains(out.String(), c.wantText) {
				t.Errorf("output %q does not contain %q", out.String(), c.wantText)
			}
		})
	}
}

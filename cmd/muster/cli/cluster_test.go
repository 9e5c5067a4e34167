package cli

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/musterd/muster/cmd/muster/internal/clicontext"
)

func TestTheFeatureLevelIsShownAndRaised(t *testing.T) {
	level, asked := "", ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if asked += r.Method + " " + r.URL.Path + " " + string(body) + "\n"; err != nil || r.URL.Path != "/api/v1/featurelevel" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		if r.Method == http.MethodPatch && strings.Contains(level, "behind") {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusConflict)
			_, _ = w.Write([]byte(`{"kind": "Status", "code": 409, "reason": "Conflict", "message": "node gpu-1 knows 1"}`))
			return
		}
		if r.Method == http.MethodPatch {
			level = `{"kind": "FeatureLevel", "level": 2, "newest": 2}`
		}
		_, _ = w.Write([]byte(level))
	}))
	defer server.Close()
	s := newShell(t, nil)
	s.save(t, clicontext.Context{Addr: server.URL, Token: token})
	const behind = `{"kind": "FeatureLevel", "level": 1, "newest": 2, "features": [{"level": 1, "name": "guests"}, {"level": 2, "name": "escrow"}],
		"behind": [{"kind": "Coordinator", "name": "c2", "level": 0}, {"kind": "Node", "name": "gpu-1", "level": 1}]}`
	for name, c := range map[string]struct {
		level, args string
		code        int
		want, asked string
	}{
		"all is shown": {level: behind, args: "cluster level", want: `Feature level 1 of 2
1: guests, on
2: escrow, off
BEHIND        NAME    KNOWS
Coordinator   c2      0
Node          gpu-1   1
`, asked: "GET"},
		"as a name":        {level: behind, args: "cluster level -o name", want: "featurelevel/1\n", asked: "GET"},
		"a raise":          {level: `{"level": 0, "newest": 2}`, args: "cluster level --raise", want: "Feature level 2 of 2\n", asked: `PATCH /api/v1/featurelevel {"level":2}`},
		"no raise is left": {level: `{"level": 2, "newest": 2}`, args: "cluster level --raise", want: "Feature level 2 of 2\n", asked: "GET"},
		"a refused raise":  {level: behind, args: "cluster level --raise", code: ExitFailed, want: "gpu-1 knows 1", asked: "PATCH"},
	} {
		t.Run(name, func(t *testing.T) {
			level, asked = c.level, ""
			code, got, stderr := s.run(context.Background(), "", strings.Fields(c.args)...)
			if c.code != ExitDone {
				got = stderr
			}
			if code != c.code || c.code == ExitDone && got != c.want || !strings.Contains(got, c.want) || !strings.Contains(asked, c.asked) || c.asked == "GET" && strings.Contains(asked, "PATCH") {
				t.Errorf("exit %d, asked %q, got\n%s\nwant\n%s", code, asked, got, c.want)
			}
		})
	}
}

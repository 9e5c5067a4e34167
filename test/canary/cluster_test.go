package canary

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterd/muster/cmd/muster/dev"
	"github.com/musterd/muster/coordinator/rest/restdoc"
)

// logs are the lines of all programs, at level debug.
type logs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logs) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// world is a cluster of one process whose fixed secrets bear the mark.
type world struct {
	t       *testing.T
	cluster *dev.Cluster
	dir     string
	logs    *logs
	// known are the secrets that the programs have drawn, as texts may have them.
	known []string
}

const patience = 2 * time.Minute

func open(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), logs: &logs{}}
	for file, secret := range map[string]string{"token": Secret("admin"), "cluster-token": Secret("cluster")} {
		if err := os.WriteFile(filepath.Join(w.dir, file), []byte(secret+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var err error
	w.cluster, err = dev.Start(ctx, dev.Config{
		Nodes: 1, Profile: "dgx-a100", DataDir: w.dir, Listen: "127.0.0.1:0", Version: "v0.0.0-test", Progress: func(int, int) {},
		Logger: slog.New(slog.NewTextHandler(w.logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, w.logs.String())
	}
	if w.cluster.Token != Secret("admin") {
		t.Fatal("the cluster does not use the secret of the test")
	}
	return w
}

// ask sends a request and returns code, header and answer as a text.
func (w *world) ask(method, path, bearer, body string) (code int, text string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 20*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, w.cluster.Addresses.REST+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+bearer)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	got, err := io.ReadAll(answer.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	var head strings.Builder
	_ = answer.Header.Write(&head)
	return answer.StatusCode, head.String() + string(got)
}

// secret takes a secret out of an answer that alone has it.
func (w *world) secret(text, field string) string {
	w.t.Helper()
	var made map[string]any
	if err := json.Unmarshal([]byte(text[strings.Index(text, "{"):]), &made); err != nil {
		w.t.Fatalf("%s: %v", text, err)
	}
	status, _ := made["status"].(map[string]any)
	token, _ := status[field].(string)
	if token == "" {
		w.t.Fatalf("%s has no %s", text, field)
	}
	parts := strings.Split(token, ".")
	w.known = append(w.known, parts[2])
	return token
}

// keys are the private keys below the folder, as texts may have them.
func (w *world) keys() {
	w.t.Helper()
	found := 0
	err := filepath.WalkDir(w.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.Contains(path, "/member/") { // of etcd
			return nil //nolint:nilerr // a file that is just being replaced
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return nil //nolint:nilerr // likewise
		}
		for block, rest := pem.Decode(raw); block != nil; block, rest = pem.Decode(rest) {
			if strings.Contains(block.Type, "PRIVATE KEY") {
				found++
				text := base64.StdEncoding.EncodeToString(block.Bytes)
				w.known = append(w.known, text[40:80], hex.EncodeToString(block.Bytes[36:56]))
			}
		}
		return nil
	})
	if err != nil || found == 0 {
		w.t.Fatalf("%d private keys: %v", found, err)
	}
}

// none fails the test for each secret in a text.
func (w *world) none(where, text string) {
	w.t.Helper()
	Judge(w.t, where, text, w.known...)
}

// TestNoSecretLeavesACluster makes secrets of each kind, sends good and bad requests with
// them, and looks for them in everything that the programs have written and answered.
func TestNoSecretLeavesACluster(t *testing.T) {
	w := open(t)
	stopped := false
	t.Cleanup(func() {
		if !stopped {
			_ = w.cluster.Stop()
		}
	})
	admin := w.cluster.Token
	_, text := w.ask("POST", "/api/v1/tokens", admin, `{"spec":{"user":"ada","role":"admin"}}`)
	ada := w.secret(text, "token")
	id := strings.Split(ada, ".")[1]
	_, text = w.ask("POST", "/api/v1/tokens/"+id+"/rotate", admin, `{"overlap":"1h"}`)
	ada = w.secret(text, "token")
	_, text = w.ask("POST", "/api/v1/bootstraptokens", admin, `{"spec":{"nodes":"gpu-*"}}`)
	boot := w.secret(text, "token")
	_, text = w.ask("POST", "/api/v1/nodes", admin, `{"kind":"Node","metadata":{"name":"later"},"spec":{"capacity":{"cpu":"8"}}}`)
	later := w.secret(text, "bootstrapToken")
	w.keys()

	for _, made := range []string{
		`allocations {"metadata":{"name":"web"},"spec":{"resources":{"requests":{"cpu":"1"}}}}`,
		`jobs {"metadata":{"name":"train"},"spec":{"template":{"spec":{"resources":{"requests":{"cpu":"1"}}}}}}`,
	} {
		kind, body, _ := strings.Cut(made, " ")
		if code, text := w.ask("POST", "/api/v1/namespaces/default/"+kind+"?wait=20s", ada, body); code != http.StatusCreated {
			t.Fatal(text)
		}
	}
	// Refusals, with secrets where callers put them by mistake.
	for what, c := range map[string]struct{ method, path, bearer, body string }{
		"a wrong token":                         {"GET", "/api/v1/nodes", ada[:len(ada)-4] + "0000", ""},
		"a bootstrap token as a token":          {"GET", "/api/v1/nodes", boot, ""},
		"a bootstrap token for another node":    {"POST", "/api/v1/nodes", boot, `{"kind":"Node","metadata":{"name":"cpu-1"}}`},
		"a bootstrap token for its node, twice": {"POST", "/api/v1/nodes", later, `{"kind":"Node","metadata":{"name":"later"}}`},
		"the cluster's token":                   {"GET", "/api/v1/nodes", Secret("cluster"), ""},
		"a node that does not exist":            {"POST", "/api/v1/nodes/nothing/fence", admin, `{"reason":"x"}`},
		"a document that is wrong":              {"POST", "/api/v1/namespaces/default/jobs", admin, `{"nothing":1}`},
		"the metrics of a wrong token":          {"GET", "/metrics/cluster", "x", ""},
	} {
		_, text := w.ask(c.method, c.path, c.bearer, c.body)
		w.none("the answer to "+what, text)
	}
	reads := 0
	for _, r := range restdoc.Routes() {
		if r.Method != http.MethodGet {
			continue
		}
		path := strings.NewReplacer("{namespace}", "default", "{tenant}", "default", "{tree}", "none", "{$}", "").Replace(r.Path)
		for _, name := range []string{"web", "train", "node-0", id} {
			code, text := w.ask("GET", strings.ReplaceAll(path, "{name}", name), admin, "")
			if code == http.StatusOK {
				reads++
			}
			w.none(r.Pattern(), text)
			if !strings.Contains(path, "{name}") {
				break
			}
		}
	}
	for _, path := range []string{"/metrics", "/metrics/cluster", "/readyz", "/openapi.json", "/api/v1/audit?result=refused", "/debug/pprof/", "/debug/vars", "/debug/requests"} {
		code, text := w.ask("GET", path, admin, "")
		w.none(path, text)
		if strings.HasPrefix(path, "/debug") && code != http.StatusNotFound {
			t.Errorf("%s is answered with %d", path, code)
		}
	}
	if reads < 30 {
		t.Errorf("%d reads were answered, want 30 or more", reads)
	}
	if code, text := w.ask("DELETE", "/api/v1/tokens/"+id, admin, ""); code != http.StatusOK {
		t.Fatal(text)
	}
	stopped = true
	if err := w.cluster.Stop(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(w.logs.String(), "access_token_made") {
		t.Error("the logs are not those of the programs")
	}
	w.none("the log", w.logs.String())
	JudgeFiles(t, w.dir, w.known...)
}

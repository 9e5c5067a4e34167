package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/cmd/muster/dev"
	"github.com/musterd/muster/test/canary"
)

// world is a cluster of one process, whose administrator is ada.
type world struct {
	t       *testing.T
	cluster *dev.Cluster
	ada     string // the token of an admin
	sent    int
}

const patience = 2 * time.Minute

func open(t *testing.T) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cluster, err := dev.Start(ctx, dev.Config{
		Nodes: 2, Profile: "dgx-a100", DataDir: t.TempDir(), Listen: "127.0.0.1:0", Version: "v0.0.0-test",
		Logger: canary.Logger(t), Progress: func(int, int) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	w := &world{t: t, cluster: cluster}
	w.ada = w.token(`{"user":"ada@example.org","role":"admin"}`)
	return w
}

// token makes an access token with the administrator's.
func (w *world) token(spec string) string {
	w.t.Helper()
	code, text := w.rest("the-token", w.cluster.Token, "POST", "/tokens", `{"spec":`+spec+`}`)
	var made api.AccessToken
	if err := json.Unmarshal([]byte(text), &made); err != nil || code != http.StatusCreated {
		w.t.Fatalf("%d %s", code, text)
	}
	return made.Status.Token
}

// requestID draws the id of the next request.
func (w *world) requestID() string {
	w.sent++
	return fmt.Sprintf("request-%d", w.sent)
}

// rest sends a request and reads the answer.
func (w *world) rest(id, bearer, method, path, body string) (int, string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, w.cluster.Addresses.REST+"/api/v1"+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("X-Request-Id", id)
	if bearer != "" {
		r.Header.Set("Authorization", "Bearer "+bearer)
	}
	switch {
	case method == http.MethodPatch:
		r.Header.Set("Content-Type", "application/merge-patch+json")
	case body != "":
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// dial connects to the API over gRPC.
func (w *world) dial() *grpc.ClientConn {
	w.t.Helper()
	conn, err := grpc.NewClient(strings.TrimPrefix(w.cluster.Addresses.REST, "http://"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// call is the context of a call over gRPC.
func (w *world) call(id, bearer string) context.Context {
	return metadata.AppendToOutgoingContext(w.t.Context(), "authorization", "Bearer "+bearer, "x-request-id", id)
}

// entries are the entries of the audit that a reader gets, in pages.
func (w *world) entries(bearer string, query url.Values) (all []api.AuditEntry) {
	w.t.Helper()
	for {
		code, text := w.rest("the-audit", bearer, "GET", "/audit?"+query.Encode(), "")
		var list api.AuditEntryList
		if err := json.Unmarshal([]byte(text), &list); err != nil || code != http.StatusOK {
			w.t.Fatalf("audit: %d %s", code, text)
		}
		all = append(all, list.Items...)
		if list.Metadata.Continue == "" {
			return all
		}
		query.Set("continue", list.Metadata.Continue)
	}
}

// of are the entries of a request.
func of(id string, all []api.AuditEntry) (found []api.AuditEntry) {
	for _, e := range all {
		if e.RequestID == id {
			found = append(found, e)
		}
	}
	return found
}

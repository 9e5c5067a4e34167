package sdk_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/sdk"
)

// A reader whose server goes away in the middle of the output asks another one, which
// sends all of it again.
func TestNoByteOfOutputComesTwice(t *testing.T) {
	line := func(member, offset int, text string) string {
		return fmt.Sprintf(`{"type":"OUTPUT","object":{"member":%d,"transaction":"t","offset":%d,"text":%q}}`+"\n", member, offset, text)
	}
	asked := 0
	serve := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/namespaces/ml/jobs/train/logs" || r.URL.RawQuery != "follow=true" {
			t.Errorf("%s", r.URL)
		}
		w.WriteHeader(http.StatusOK)
		if asked++; asked == 1 {
			_, _ = fmt.Fprint(w, line(0, 0, "one\ntw"), line(1, 0, "x"), `{"type":"BOOKMARK"}`+"\n")
			return // without the end
		}
		_, _ = fmt.Fprint(w, line(0, 0, "one\n"), line(0, 4, "two\nthree\n"), line(1, 0, "x"), `{"type":"LATER"}`+"\n", `{"type":"END"}`+"\n", line(0, 14, "behind the end"))
	}
	first, second := httptest.NewServer(http.HandlerFunc(serve)), httptest.NewServer(http.HandlerFunc(serve))
	t.Cleanup(func() { first.Close(); second.Close() })
	c, err := sdk.NewClient(sdk.Config{Endpoint: first.URL + "," + second.URL})
	if err != nil {
		t.Fatal(err)
	}
	got := map[int32]string{}
	for piece, err := range c.Jobs("ml").Logs(t.Context(), "train", sdk.LogOptions{Follow: true}) {
		if err != nil {
			t.Fatal(err)
		}
		if int(piece.Offset) != len(got[piece.Member]) {
			t.Errorf("a piece at %d behind %q", piece.Offset, got[piece.Member])
		}
		got[piece.Member] += piece.Text
	}
	if got[0] != "one\ntwo\nthree\n" || got[1] != "x" || asked != 2 {
		t.Errorf("%q after %d requests", got, asked)
	}
}

func TestARefusalEndsTheOutput(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery != "follow=false&member=3" {
			t.Errorf("%s", r.URL)
		}
		_, _ = fmt.Fprintln(w, `{"type":"ERROR","object":{"code":401,"message":"the token was revoked"}}`)
	}))
	t.Cleanup(server.Close)
	c, err := sdk.NewClient(sdk.Config{Endpoint: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	member := 3
	var last error
	for _, err := range c.Jobs("ml").Logs(t.Context(), "train", sdk.LogOptions{Member: &member}) {
		last = err
	}
	var status *api.Status
	if !errors.As(last, &status) || status.Code != 401 {
		t.Errorf("the output ends with %v, want the refusal", last)
	}
}

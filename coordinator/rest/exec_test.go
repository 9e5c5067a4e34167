package rest_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/rest"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/test/resttest"
	"github.com/musterd/muster/websocket"
)

// execServer serves the job ml/train, whose commands are those of resttest.
func execServer(t *testing.T) string {
	t.Helper()
	cluster := resttest.New(time.Now)
	cluster.SetOutput("ml", "train")
	server := httptest.NewServer(rest.NewHandler(rest.Config{Service: cluster, Authenticator: service.StaticToken(token)}))
	t.Cleanup(server.Close)
	return server.URL + "/api/v1/namespaces/ml/jobs/train/exec"
}

func open(t *testing.T, url string) *websocket.Conn {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	ws, answer, err := websocket.Ask(http.DefaultClient, r, api.ExecProtocol, 1+grant.MaxExecPiece)
	if err != nil {
		t.Fatal(err)
	}
	if ws == nil {
		body, _ := io.ReadAll(answer.Body)
		t.Fatalf("%s: %s", answer.Status, body)
	}
	t.Cleanup(func() { ws.Close() })
	return ws
}

// transcript is each message as its channel and text, up to the end.
func transcript(t *testing.T, ws *websocket.Conn) (all []string) {
	t.Helper()
	for {
		data, err := ws.Read()
		if errors.Is(err, websocket.ErrClosed) {
			return append(all, "closed")
		}
		if err != nil || len(data) == 0 {
			t.Fatalf("after %q: %v", all, err)
		}
		all = append(all, itoa(int(data[0]))+" "+string(data[1:]))
	}
}

func itoa(n int) string {
	text, _ := json.Marshal(n)
	return string(text)
}

func message(channel byte, text string) []byte { return append([]byte{channel}, text...) }

func TestASessionHasChannels(t *testing.T) {
	url := execServer(t)
	for name, c := range map[string]struct {
		query string
		send  [][]byte
		want  []string
	}{
		"output and exit": {"?command=false&command=-x", nil, []string{"1 false -x\n", "2 failed\n", `3 {"kind":"ExecExit","code":1,"reason":"Completed"}`, "closed"}},
		"input to its end": {
			"?command=cat&input=true", [][]byte{message(api.ExecInput, "one"), message(api.ExecInputEnd, "\x00")},
			[]string{"1 cat\n", "1 one", "6 3", `3 {"kind":"ExecExit","code":0,"reason":"Completed"}`, "closed"},
		},
		"input for a command that has ended": {
			"?command=head&input=true", [][]byte{message(api.ExecInput, "one"), message(api.ExecInput, "two")},
			[]string{"1 head\n", `3 {"kind":"ExecExit","code":0,"reason":"Completed"}`, "closed"},
		},
		"a window and a signal": {
			"?command=sh&tty=true&rows=24&columns=80&term=xterm", [][]byte{message(api.ExecResize, `{"rows":5,"columns":7}`), message(api.ExecSignal, "15")},
			[]string{"1 sh\n", "1 resized\n", `3 {"kind":"ExecExit","code":143,"signal":15,"reason":"Completed"}`, "closed"},
		},
		"the own command": {
			"?attach=true&input=true&from=17&rows=24&columns=80", [][]byte{message(api.ExecInputEnd, "\x00")},
			[]string{"1 attached from 17\n", `3 {"kind":"ExecExit","code":0,"reason":"Completed"}`, "closed"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			ws := open(t, url+c.query)
			for _, m := range c.send {
				if err := ws.Write(m); err != nil {
					t.Fatal(err)
				}
			}
			if got := transcript(t, ws); strings.Join(got, "|") != strings.Join(c.want, "|") {
				t.Errorf("got %q\nwant %q", got, c.want)
			}
		})
	}
}

// TestAClientThatBreaksARuleLosesItsSession: with a message that names the rule.
func TestAClientThatBreaksARuleLosesItsSession(t *testing.T) {
	url := execServer(t)
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"an empty message":          {nil, "an empty message"},
		"a channel of the output":   {message(api.ExecOutput, "one"), "channel 1 is not known"},
		"a window that is none":     {message(api.ExecResize, `{"rows":-1}`), "channel 4: json"},
		"a window without a size":   {message(api.ExecResize, `{}`), "a window without a size"},
		"a signal that is none":     {message(api.ExecSignal, `KILL`), `"KILL": want the number of a signal`},
		"a signal that is too high": {message(api.ExecSignal, `65`), `"65": want the number of a signal, 1 to 64`},
		"the end of another input":  {message(api.ExecInputEnd, "\x01"), "want the number of the input's channel"},
		"too much at once":          {message(api.ExecInput, strings.Repeat("x", 32<<10+1)), "a message of more than 32769 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			ws := open(t, url+"?command=cat&input=true")
			if err := ws.Write(c.data); err != nil {
				t.Fatal(err)
			}
			got := strings.Join(transcript(t, ws), "|")
			if !strings.Contains(got, `"code":503`) || !strings.Contains(strings.ReplaceAll(got, `\"`, `"`), c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// FuzzExecInput reads a client's messages from outside bytes: what is read is one message.
func FuzzExecInput(f *testing.F) {
	for _, m := range [][]byte{message(api.ExecInput, "one"), message(api.ExecInputEnd, "\x00"), message(api.ExecResize, `{"rows":5,"columns":7}`), message(api.ExecSignal, "15"), {}, message(9, "")} {
		f.Add(m, "command=sh&tty=true&rows=24&term=xterm")
		f.Add(m, "attach=true&from=7&input=true&rows=24")
	}
	f.Fuzz(func(t *testing.T, data []byte, query string) {
		in, err := rest.ParseExecInput(data)
		if err == nil && (in.Signal < 0 || in.Signal > grant.MaxSignal || in.End && (len(in.Data) > 0 || in.Signal != 0)) {
			t.Errorf("%q is read as %+v", data, in)
		}
		q, status := service.ExecQueryOf(query)
		if status == nil && (q.Attach == (len(q.Command) > 0) || q.From != nil && (*q.From < 0 || !q.Attach) || len(q.Term) > grant.MaxTerm || q.Member < 0) {
			t.Errorf("%q is read as %+v", query, q)
		}
	})
}

func TestWhatOpensNoSession(t *testing.T) {
	url := execServer(t)
	upgrade := http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="}, "Sec-Websocket-Protocol": {api.ExecProtocol}}
	other := upgrade.Clone()
	other.Set("Origin", "https://elsewhere.example")
	old := upgrade.Clone()
	old.Set("Sec-Websocket-Version", "8")
	for name, c := range map[string]struct {
		header http.Header
		query  string
		code   int
		want   string
	}{
		"no WebSocket":             {http.Header{}, "?command=sh", 426, "Upgrade: websocket, or Jobs/Exec of gRPC"},
		"another origin":           {other, "?command=sh", 403, "want a page of"},
		"another version":          {old, "?command=sh", 400, "Sec-WebSocket-Version"},
		"no command":               {upgrade, "", 422, "command: absent"},
		"a zero byte":              {upgrade, "?command=a%00b", 422, "command[0]: it has a zero byte"},
		"too much":                 {upgrade, "?command=" + strings.Repeat("x", 16<<10+1), 422, "command: 16385 bytes, the limit is 16384"},
		"too many arguments":       {upgrade, "?command=a" + strings.Repeat("&command=", 1024), 422, "command: 1025 arguments, the limit is 1024"},
		"a terminal's name":        {upgrade, "?command=sh&term=a%20b", 422, `term: \"a b\"`},
		"no member":                {upgrade, "?command=sh&member=-1", 400, `member=\"-1\"`},
		"no size":                  {upgrade, "?command=sh&rows=65536", 400, "want a number from 0 to 65535"},
		"tty is no bool":           {upgrade, "?command=sh&tty=maybe", 400, "want true or false"},
		"twice":                    {upgrade, "?command=sh&tty=true&tty=true", 400, "is given 2 times"},
		"attach and a command":     {upgrade, "?attach=true&command=sh", 422, "command: given together with attach"},
		"attach and a terminal":    {upgrade, "?attach=true&tty=true", 422, "tty: given together with attach"},
		"a place without attach":   {upgrade, "?command=sh&from=0", 422, "from: 0: want an offset in the output, from 0, together with attach"},
		"a place that is negative": {upgrade, "?attach=true&from=-1", 400, "want an offset in the output, from 0"},
		"a parameter unknown":      {upgrade, "?command=sh&container=x", 400, `unknown query parameter \"container\"`},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+c.query, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header = c.header.Clone()
			r.Header.Set("Authorization", "Bearer "+token)
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			body, err := io.ReadAll(answer.Body)
			if err != nil || answer.StatusCode != c.code || !strings.Contains(string(body), c.want) {
				t.Errorf("%d %v %s\nwant %d %s", answer.StatusCode, err, body, c.code, c.want)
			}
		})
	}
}

// bearer lets in the bearer of token until the token is revoked.
type bearer struct{ revoked chan struct{} }

func (b bearer) Authenticate(ctx context.Context, secret string) (service.Principal, error) {
	select {
	case <-b.revoked:
		return service.Principal{}, errors.New("unknown token")
	default:
		return service.StaticToken(token).Authenticate(ctx, secret)
	}
}

func (b bearer) Changed() <-chan struct{} { return b.revoked }

// A revoked token ends an open session, with the 401 of the token.
func TestASessionEndsWithItsToken(t *testing.T) {
	cluster := resttest.New(time.Now)
	cluster.SetOutput("ml", "train")
	door := bearer{make(chan struct{})}
	server := httptest.NewServer(rest.NewHandler(rest.Config{Service: cluster, Authenticator: door}))
	t.Cleanup(server.Close)
	ws := open(t, server.URL+"/api/v1/namespaces/ml/jobs/train/exec?command=cat&input=true")
	if got, err := ws.Read(); err != nil || string(got[1:]) != "cat\n" {
		t.Fatalf("%q, %v", got, err)
	}
	close(door.revoked)
	got := transcript(t, ws)
	if len(got) != 2 || !strings.HasPrefix(got[0], `3 {"kind":"Status"`) || !strings.Contains(got[0], `"code":401`) || got[1] != "closed" {
		t.Errorf("after the revocation %q, want a Status of 401 and the end", got)
	}
}

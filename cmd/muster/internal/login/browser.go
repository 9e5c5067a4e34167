package login

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// callback is the path that the provider sends the browser back to.
const callback = "/callback"

// Browser logs in by a browser on this host. listen is the loopback address that the
// browser comes back to, with port 0 for a free one. show gets the URL that the browser
// has to open. It ends with ctx.
func Browser(ctx context.Context, m Method, listen string, show func(url string)) (Session, error) {
	p, err := open(ctx, m)
	if err != nil {
		return Session{}, err
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return Session{}, fmt.Errorf("the address that the browser comes back to: %w", err)
	}
	config := p.config("http://" + l.Addr().String() + callback)
	state, nonce, verifier := rand.Text(), rand.Text(), oauth2.GenerateVerifier()
	codes := make(chan back, 1)
	server := &http.Server{Handler: comeBack(state, codes), ReadHeaderTimeout: 5 * time.Second, MaxHeaderBytes: 16 << 10}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }() // its end is Shutdown's
	defer func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if server.Shutdown(ending) != nil {
			_ = server.Close()
		}
		<-done
	}()
	show(config.AuthCodeURL(state, oauth2.S256ChallengeOption(verifier), oidc.Nonce(nonce)))
	select {
	case got := <-codes:
		if got.err != nil {
			return Session{}, got.err
		}
		t, err := config.Exchange(p.context(ctx), got.code, oauth2.VerifierOption(verifier))
		if err != nil {
			return Session{}, worded(m.Issuer, err)
		}
		return p.session(ctx, t, nonce, "")
	case <-ctx.Done():
		return Session{}, fmt.Errorf("nobody has logged in: %w", ctx.Err())
	}
}

// back is the provider's answer by way of the browser.
type back struct {
	code string
	err  error
}

// comeBack takes the first answer with the right state. Every other request is refused:
// a page in the browser may ask this address too.
func comeBack(state string, codes chan<- back) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+callback, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(state)) != 1 {
			http.Error(w, "This is the answer to another login.", http.StatusBadRequest)
			return
		}
		got := back{code: q.Get("code")}
		if said := q.Get("error"); said != "" {
			got.err = fmt.Errorf("the identity provider refuses the login: %s %s", said, q.Get("error_description"))
		} else if got.code == "" {
			got.err = errors.New("the identity provider gave no code")
		}
		select {
		case codes <- got:
		default: // an answer came before
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		text := "You are logged in. You may close this page and go back to the terminal.\n"
		if got.err != nil {
			text = "The login has failed; the terminal says why.\n"
		}
		_, _ = io.WriteString(w, text) // a browser that has gone needs no page
	})
	return mux
}

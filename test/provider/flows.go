package provider

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
)

// grant is an authorization code that was given.
type grant struct{ redirect, challenge, nonce string }

// device is one login by the device flow.
type device struct{ asks, agreesAfter int }

// NoDevice makes the provider one without the device flow.
func (p *Provider) NoDevice() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.noDevice = true
}

// Forget ends all refresh tokens.
func (p *Provider) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.refresh)
}

// authorize is the page that the user agrees on: it sends the browser back at once.
func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	back, err := url.Parse(q.Get("redirect_uri"))
	if err != nil || back.Hostname() != "127.0.0.1" || q.Get("client_id") != ClientID || q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" || q.Get("code_challenge") == "" {
		http.Error(w, "bad request for a login", http.StatusBadRequest)
		return
	}
	code := rand.Text()
	p.mu.Lock()
	p.codes[code] = grant{q.Get("redirect_uri"), q.Get("code_challenge"), q.Get("nonce")}
	p.mu.Unlock()
	answers := url.Values{"code": {code}, "state": {q.Get("state")}}
	back.RawQuery = answers.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound)
}

// startDevice begins a login without a browser on this host. The user agrees after the
// second question.
func (p *Provider) startDevice(w http.ResponseWriter, r *http.Request) {
	if r.FormValue("client_id") != ClientID {
		answer(w, http.StatusBadRequest, map[string]string{"error": "invalid_client"})
		return
	}
	code := rand.Text()
	p.mu.Lock()
	p.devices[code] = &device{agreesAfter: 1}
	p.mu.Unlock()
	answer(w, http.StatusOK, map[string]any{
		"device_code": code, "user_code": "WDJB-MJHT", "verification_uri": p.server.URL + "/activate", "verification_uri_complete": p.server.URL + "/activate?user_code=WDJB-MJHT",
		"expires_in": 600, "interval": 1,
	})
}

// token gives tokens for a code, a device and a refresh token.
func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	refused := func(reason string) { answer(w, http.StatusBadRequest, map[string]string{"error": reason}) }
	if id, _, basic := r.BasicAuth(); r.FormValue("client_id") != ClientID && !(basic && id == ClientID) {
		refused("invalid_client")
		return
	}
	nonce := ""
	switch r.FormValue("grant_type") {
	case "authorization_code":
		p.mu.Lock()
		g, found := p.codes[r.FormValue("code")]
		delete(p.codes, r.FormValue("code"))
		p.mu.Unlock()
		sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		if !found || g.redirect != r.FormValue("redirect_uri") || base64.RawURLEncoding.EncodeToString(sum[:]) != g.challenge {
			refused("invalid_grant")
			return
		}
		nonce = g.nonce
	case "urn:ietf:params:oauth:grant-type:device_code":
		p.mu.Lock()
		d, found := p.devices[r.FormValue("device_code")]
		waits := found && d.asks < d.agreesAfter
		if found {
			d.asks++
		}
		p.mu.Unlock()
		switch {
		case !found:
			refused("expired_token")
			return
		case waits:
			refused("authorization_pending")
			return
		}
	case "refresh_token":
		p.mu.Lock()
		good := p.refresh[r.FormValue("refresh_token")]
		delete(p.refresh, r.FormValue("refresh_token")) // each one is good once
		p.mu.Unlock()
		if !good {
			refused("invalid_grant")
			return
		}
	default:
		refused("unsupported_grant_type")
		return
	}
	more := map[string]any{}
	if nonce != "" {
		more["nonce"] = nonce
	}
	id, again := p.Token(more), rand.Text()
	p.mu.Lock()
	p.refresh[again] = true
	lifetime := p.lifetime
	p.mu.Unlock()
	answer(w, http.StatusOK, map[string]any{"access_token": rand.Text(), "token_type": "Bearer", "expires_in": int(lifetime.Seconds()), "id_token": id, "refresh_token": again})
}

package login

import (
	"context"
	"fmt"

	"golang.org/x/oauth2"
)

// Device logs in by a browser on any host. show gets the page that the person opens
// there, and the code that the person enters. It ends with ctx, or when the code does.
func Device(ctx context.Context, m Method, show func(page, code string)) (Session, error) {
	p, err := open(ctx, m)
	if err != nil {
		return Session{}, err
	}
	config := p.config("")
	if config.Endpoint.DeviceAuthURL == "" {
		return Session{}, fmt.Errorf("%s has no login by device: log in without --device, on a host with a browser", m.Issuer)
	}
	// The code is good for the program that has begun the login alone.
	verifier := oauth2.GenerateVerifier()
	began, err := config.DeviceAuth(p.context(ctx), oauth2.S256ChallengeOption(verifier))
	if err != nil {
		return Session{}, worded(m.Issuer, err)
	}
	page := began.VerificationURIComplete
	if page == "" {
		page = began.VerificationURI
	}
	show(page, began.UserCode)
	t, err := config.DeviceAccessToken(p.context(ctx), began, oauth2.VerifierOption(verifier))
	if err != nil {
		return Session{}, worded(m.Issuer, err)
	}
	return p.session(ctx, t, "", "")
}

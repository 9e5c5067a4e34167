package cli

import (
	"context"
	"crypto"
	"crypto/x509"
	"errors"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/pki"
	"github.com/musterd/muster/pki/folder"
)

// createCertificate makes an access token that is proven by a client certificate.
func (a *app) createCertificate(cmd *cobra.Command, spec api.AccessTokenSpec, dir string) error {
	judged := spec // with the beginning of the request that is made below
	judged.Request = "-----BEGIN CERTIFICATE REQUEST-----"
	if status := judged.Validate(); status != nil {
		return usagef("%s", flagOf.Replace(status.Message))
	}
	if err := a.connect(); err != nil {
		return err
	}
	f, key, request, err := newRequest(dir)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), callTimeout)
	defer cancel()
	spec.Request = request
	made, err := a.client.Tokens().Create(ctx, spec)
	if err != nil {
		return err
	}
	a.warnOfTenant(ctx, spec.Tenant)
	if err := save(f, key, made.Status.Chain, made.Status.Authorities); err != nil {
		return err
	}
	if !a.isTable() && a.output != "name" {
		return a.encode(made)
	}
	a.printf("%s\n%s\n", f.PartyPath(), f.RootsPath())
	a.notef("certificate %s of %s: %s, good until %s; use it with --client-certificate and --ca-file\n", made.Metadata.Name, made.Spec.User, rightsOf(made), made.Status.Expires)
	return nil
}

// newRequest draws a key in a folder that has no certificate yet, and makes the request
// for the key. Only the request travels.
func newRequest(dir string) (f *folder.Folder, key crypto.Signer, request string, err error) {
	if f, err = folder.Open(dir); err != nil {
		return nil, nil, "", usagef("--dir: %w", err)
	}
	if _, err := f.Load(); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, "", errors.Join(usagef("--dir: %q holds a certificate already", dir), err)
	}
	if key, err = f.PendingKey(); err != nil {
		return nil, nil, "", err
	}
	der, err := pki.NewRequest(key)
	if err != nil {
		return nil, nil, "", err
	}
	return f, key, string(pki.FormatRequestPEM(der)), nil
}

// save writes the certificate of a request into its folder.
func save(f *folder.Folder, key crypto.Signer, chain, authorities string) error {
	var lists [2][]*x509.Certificate
	var err error
	for i, text := range []string{chain, authorities} {
		if lists[i], err = pki.ParsePEM([]byte(text)); err != nil {
			return err
		}
	}
	return f.Save(folder.Party{Chain: lists[0], Key: key, Roots: lists[1]})
}

package enroll

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/pki"
	"github.com/musterd/muster/resource"
)

// attempts bounds how often a Txn is repeated whose compares lost a race.
const attempts = 8

// Errors by which callers tell refusals apart.
var (
	// ErrFixed: the authorities come from files and are changed there.
	ErrFixed = errors.New("the authorities come from files (tls.caCertFile): change them there")
	// ErrNotFound: there is no such token or authority.
	ErrNotFound = errors.New("not found")
	// ErrInUse: somebody still needs it.
	ErrInUse = errors.New("still in use")
	// ErrInvalid: the request contradicts itself.
	ErrInvalid = errors.New("invalid")
)

// Files are an authority of the cluster's own: a PEM file whose first
// certificate signs and all of which are trusted, and the first one's key.
type Files struct{ Certificates, Key string }

// read reads the files. The key must be its owner's alone.
func (f *Files) read() (*trust, error) {
	text, err := os.ReadFile(f.Certificates)
	if err != nil {
		return nil, fmt.Errorf("tls.caCertFile: %w", err)
	}
	roots, err := pki.ParsePEM(text)
	if err != nil {
		return nil, fmt.Errorf("tls.caCertFile %s: %w", f.Certificates, err)
	}
	info, err := os.Stat(f.Key)
	if err != nil {
		return nil, fmt.Errorf("tls.caKeyFile: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, fmt.Errorf("tls.caKeyFile %s: mode %04o lets others use it; run: chmod 0600 %s", f.Key, mode, f.Key)
	}
	text, err = os.ReadFile(f.Key)
	if err != nil {
		return nil, fmt.Errorf("tls.caKeyFile: %w", err)
	}
	key, err := pki.ParseKeyPEM(text)
	if err != nil {
		return nil, fmt.Errorf("tls.caKeyFile %s: %w", f.Key, err)
	}
	signer, err := pki.ParseAuthority(roots[0].Raw, key)
	if err != nil {
		return nil, fmt.Errorf("tls.caCertFile %s with tls.caKeyFile %s: %w", f.Certificates, f.Key, err)
	}
	return &trust{roots: roots, signer: signer}, nil
}

// changed reports whether the files hold something else than t, and can be
// used.
func (f *Files) changed(t *trust) bool {
	if f == nil {
		return false
	}
	now, err := f.read()
	return err == nil && !now.same(t)
}

// same reports whether both trust and sign the same.
func (t *trust) same(u *trust) bool {
	return t.signer.ID() == u.signer.ID() && slices.EqualFunc(t.roots, u.roots, (*x509.Certificate).Equal)
}

// shown is the chain that a party presents: coordinators add the roots, among
// which a host that has only a token finds the one it names.
func (t *trust) shown(role pki.Role, chain []*x509.Certificate) []*x509.Certificate {
	if role == pki.Coordinator {
		return append(slices.Clip(chain), t.roots...)
	}
	return chain
}

// loadTrust reads the authorities, and makes the first one of a new cluster.
func (s *Service) loadTrust(ctx context.Context) (*trust, error) {
	if s.config.Files != nil {
		return s.config.Files.read()
	}
	for range attempts {
		kv, found, _, err := s.config.Store.Get(ctx, record.AuthoritiesKey)
		if err != nil {
			return nil, fmt.Errorf("read the authorities: %w", err)
		}
		if found {
			return s.parseTrust(kv)
		}
		first, err := pki.NewAuthority(s.config.Cluster, time.Now())
		if err != nil {
			return nil, err
		}
		root, err := rootRecord(first)
		if err != nil {
			return nil, err
		}
		rec := record.Authorities{Cluster: s.config.Cluster, Roots: []record.AuthorityRoot{root}}
		if _, err := s.config.Store.Txn(ctx, record.Txn{
			If:   []record.Compare{record.Absent(record.AuthoritiesKey)},
			Then: []record.Op{record.Put(record.AuthoritiesKey, record.MustEncode(rec))},
		}); err != nil && !errors.Is(err, record.ErrUnknownOutcome) {
			return nil, fmt.Errorf("write the first authority: %w", err)
		}
	}
	return nil, errors.New("the authorities kept changing; try again")
}

func rootRecord(a *pki.Authority) (record.AuthorityRoot, error) {
	key, err := pki.MarshalKey(a.Key)
	if err != nil {
		return record.AuthorityRoot{}, err
	}
	return record.AuthorityRoot{
		ID: a.ID(), Certificate: a.Certificate.Raw, Key: key, Cross: pki.Raw(a.Cross), Created: stamp(time.Now()),
	}, nil
}

// parseTrust reads the record. Cross certificates of roots that are gone are
// left out: nobody trusts those any more.
func (s *Service) parseTrust(kv record.KV) (*trust, error) {
	rec, err := record.Decode[record.Authorities](kv.Key, kv.Value)
	if err != nil {
		return nil, err
	}
	if rec.Cluster != s.config.Cluster {
		return nil, fmt.Errorf("%s is of cluster %q, this coordinator of %q: is it the right store?", kv.Key, rec.Cluster, s.config.Cluster)
	}
	t := &trust{revision: kv.ModRev}
	for _, root := range rec.Roots {
		a, err := pki.ParseAuthority(root.Certificate, root.Key)
		if err != nil {
			return nil, fmt.Errorf("%s: root %s: %w", kv.Key, root.ID, err)
		}
		if len(root.Cross) > 0 {
			cross, err := pki.ParseCertificates(root.Cross)
			if err != nil {
				return nil, fmt.Errorf("%s: root %s: cross certificates: %w", kv.Key, root.ID, err)
			}
			for _, c := range cross {
				if slices.ContainsFunc(t.roots, func(r *x509.Certificate) bool { return bytes.Equal(r.SubjectKeyId, c.AuthorityKeyId) }) {
					a.Cross = append(a.Cross, c)
				}
			}
		}
		t.roots, t.signer = append(t.roots, a.Certificate), a
	}
	return t, nil
}

// AuthorityStatus is one authority as operators see it.
type AuthorityStatus struct {
	Certificate *x509.Certificate
	ID          string
	Signs       bool
	// Nodes counts those whose certificate it signed and that has not expired.
	Nodes int
	// At is the revision of the last change of the list of authorities; 0 where the
	// authorities are files.
	At resource.Revision
}

// Authorities returns the authorities, oldest first.
func (s *Service) Authorities(ctx context.Context) ([]AuthorityStatus, error) {
	t, err := s.loadTrust(ctx)
	if err != nil {
		return nil, err
	}
	users, err := s.users(ctx)
	if err != nil {
		return nil, err
	}
	var list []AuthorityStatus
	for _, c := range t.roots {
		id := fmt.Sprintf("%x", c.SubjectKeyId)
		list = append(list, AuthorityStatus{Certificate: c, ID: id, Signs: id == t.signer.ID(), Nodes: len(users[id]), At: t.revision})
	}
	return list, nil
}

// users lists, by issuer, the nodes whose certificates are still good.
func (s *Service) users(ctx context.Context) (map[string][]string, error) {
	all, _, err := s.config.Store.Range(ctx, record.EnrolledPrefix, store.RangeOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the enrolled nodes: %w", err)
	}
	now, users := time.Now(), map[string][]string{}
	for _, kv := range all {
		node, err := record.ParseEnrolledKey(kv.Key)
		if err != nil {
			return nil, err
		}
		rec, err := record.Decode[record.Enrolled](kv.Key, kv.Value)
		if err != nil {
			return nil, err
		}
		if expires, err := time.Parse(time.RFC3339, rec.Expires); err == nil && expires.After(now) && rec.Ended == "" {
			users[rec.Issuer] = append(users[rec.Issuer], string(node))
		}
	}
	return users, nil
}

// Rotate makes a new authority that signs from now on. Those before it stay
// trusted until they are retired; nodes and coordinators replace their
// certificates by themselves.
func (s *Service) Rotate(ctx context.Context) (string, error) {
	var made string
	err := s.changeAuthorities(ctx, func(rec *record.Authorities, t *trust) error {
		if len(rec.Roots) > 1 {
			return fmt.Errorf("%w: %d authorities are trusted already: retire the old one first", ErrInUse, len(rec.Roots))
		}
		next, err := t.signer.Succeed(s.config.Cluster, time.Now())
		if err != nil {
			return err
		}
		root, err := rootRecord(next)
		if err != nil {
			return err
		}
		rec.Roots = append(rec.Roots, root)
		made = root.ID
		return nil
	})
	return made, err
}

// Retire ends the trust in an authority for which check returns no error; check is
// given the id and the revision of the authorities. Retire is refused while nodes have
// certificates by the authority, unless forced: those then have to enroll anew.
func (s *Service) Retire(ctx context.Context, id string, force bool, check Check[AuthorityStatus]) error {
	return s.changeAuthorities(ctx, func(rec *record.Authorities, t *trust) error {
		at := slices.IndexFunc(rec.Roots, func(r record.AuthorityRoot) bool { return r.ID == id })
		switch {
		case at < 0:
			return fmt.Errorf("%w: there is no authority %q", ErrNotFound, id)
		}
		if err := check.of(AuthorityStatus{ID: id, At: t.revision}); err != nil {
			return err
		}
		switch {
		case id == t.signer.ID():
			return fmt.Errorf("%w: authority %s signs; rotate first", ErrInUse, id)
		}
		users, err := s.users(ctx)
		if err != nil {
			return err
		}
		if nodes := users[id]; len(nodes) > 0 && !force {
			return fmt.Errorf("%w: authority %s: %d nodes have certificates by it, the first is %s; they renew them while they are up, or force it and let them enroll anew",
				ErrInUse, id, len(nodes), nodes[0])
		}
		rec.Roots = slices.Delete(rec.Roots, at, at+1)
		return nil
	})
}

// changeAuthorities rewrites the record.
func (s *Service) changeAuthorities(ctx context.Context, change func(*record.Authorities, *trust) error) error {
	if s.config.Files != nil {
		return ErrFixed
	}
	for range attempts {
		kv, found, _, err := s.config.Store.Get(ctx, record.AuthoritiesKey)
		if err != nil {
			return err
		}
		if !found {
			return fmt.Errorf("%w: %s", ErrNotFound, record.AuthoritiesKey)
		}
		rec, err := record.Decode[record.Authorities](kv.Key, kv.Value)
		if err != nil {
			return err
		}
		t, err := s.parseTrust(kv)
		if err != nil {
			return err
		}
		if err := change(&rec, t); err != nil {
			return err
		}
		result, err := s.config.Store.Txn(ctx, record.Txn{
			If:   []record.Compare{record.ModRevIs(kv.Key, kv.ModRev)},
			Then: []record.Op{record.Put(kv.Key, record.MustEncode(rec))},
		})
		if err != nil || result.Succeeded {
			return err
		}
	}
	return errors.New("the authorities kept changing; try again")
}

package enroll

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/pki"
	"github.com/musterd/muster/resource"
)

// Default and bounds of a bootstrap token.
const (
	DefaultTokenTTL = time.Hour
	MinTokenTTL     = time.Second
	MaxTokenTTL     = 30 * 24 * time.Hour
	MaxTokenUses    = 100_000
	// tokenKept is how long an expired token is still listed.
	tokenKept = 24 * time.Hour
)

// TokenOptions are a bootstrap token to be made.
type TokenOptions struct {
	Nodes   string        // pattern of node ids
	TTL     time.Duration // 0 is DefaultTokenTTL
	Uses    int           // 0 is one
	Replace bool          // lets in nodes that exist
	Labels  map[string]string
	Creator string
}

// CreateToken makes a bootstrap token. Its text is nowhere kept.
func (s *Service) CreateToken(ctx context.Context, o TokenOptions) (pki.Token, Token, error) {
	o.TTL, o.Uses = cmp.Or(o.TTL, DefaultTokenTTL), cmp.Or(o.Uses, 1)
	none := Token{}
	if err := pki.CheckPattern(o.Nodes); err != nil {
		return pki.Token{}, none, fmt.Errorf("%w: spec.nodes: %w", ErrInvalid, err)
	}
	switch {
	case o.TTL < MinTokenTTL || o.TTL > MaxTokenTTL:
		return pki.Token{}, none, fmt.Errorf("%w: spec.ttl: %s is outside %s..%s", ErrInvalid, o.TTL, MinTokenTTL, MaxTokenTTL)
	case o.Uses < 1 || o.Uses > MaxTokenUses:
		return pki.Token{}, none, fmt.Errorf("%w: spec.uses: %d is outside 1..%d", ErrInvalid, o.Uses, MaxTokenUses)
	case o.Replace && (o.Uses > 1 || !isPlain(o.Nodes)):
		return pki.Token{}, none, fmt.Errorf("%w: spec.replace: true: a token that replaces a node is for one node, by its id, once: not for %q, %d times", ErrInvalid, o.Nodes, o.Uses)
	}
	now := time.Now()
	token := pki.NewToken(pki.PinOf(s.trust.Load().signer.Certificate))
	rec := record.BootstrapToken{
		ID: token.ID, Hash: token.Hash(), Nodes: o.Nodes, Uses: o.Uses, Replace: o.Replace, Labels: o.Labels, Creator: o.Creator,
		Created: stamp(now), Expires: stamp(now.Add(o.TTL)),
	}
	result, err := s.config.Store.Txn(ctx, record.Txn{
		If:   []record.Compare{record.Absent(record.TokenKey(token.ID))},
		Then: []record.Op{record.Put(record.TokenKey(token.ID), record.MustEncode(rec))},
	})
	switch {
	case err != nil:
		return pki.Token{}, none, fmt.Errorf("write token %s: %w", token.ID, err)
	case !result.Succeeded:
		return pki.Token{}, none, fmt.Errorf("token %s exists already: try again", token.ID)
	}
	s.log.Info("bootstrap_token_made", "token", token.ID, "nodes", o.Nodes, "uses", o.Uses, "expires", rec.Expires, "creator", o.Creator)
	return token, Token{rec, result.Revision}, nil
}

func isPlain(pattern string) bool {
	return !slices.ContainsFunc([]byte(pattern), func(c byte) bool { return c == '*' || c == '?' })
}

// Token is a bootstrap token and the revision of its last change.
type Token struct {
	record.BootstrapToken
	At resource.Revision
}

// ListTokens returns all tokens, oldest first, and forgets those that expired
// a day ago.
func (s *Service) ListTokens(ctx context.Context) ([]Token, error) {
	all, _, err := s.config.Store.Range(ctx, record.TokensPrefix, store.RangeOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the bootstrap tokens: %w", err)
	}
	var list []Token
	for _, kv := range all {
		rec, err := record.Decode[record.BootstrapToken](kv.Key, kv.Value)
		if err != nil {
			return nil, err
		}
		if expired(rec, time.Now().Add(-tokenKept)) {
			if _, err := s.config.Store.Txn(ctx, record.Txn{Then: []record.Op{record.Delete(kv.Key)}}); err != nil {
				return nil, fmt.Errorf("forget token %s: %w", rec.ID, err)
			}
			continue
		}
		list = append(list, Token{rec, kv.ModRev})
	}
	slices.SortFunc(list, func(a, b Token) int {
		return cmp.Or(cmp.Compare(a.Created, b.Created), cmp.Compare(a.ID, b.ID))
	})
	return list, nil
}

// RevokeToken ends a token for which check returns no error. Nodes that the token has
// let in stay.
func (s *Service) RevokeToken(ctx context.Context, id string, check Check[Token]) (Token, error) {
	key := record.TokenKey(id)
	for range attempts {
		kv, found, _, err := s.config.Store.Get(ctx, key)
		if err != nil {
			return Token{}, err
		}
		if !found {
			return Token{}, fmt.Errorf("%w: there is no bootstrap token %q", ErrNotFound, id)
		}
		rec, err := record.Decode[record.BootstrapToken](key, kv.Value)
		if err != nil {
			return Token{}, err
		}
		token := Token{rec, kv.ModRev}
		if err := check.of(token); err != nil {
			return Token{}, err
		}
		result, err := s.config.Store.Txn(ctx, record.Txn{
			If: []record.Compare{record.ModRevIs(key, kv.ModRev)}, Then: []record.Op{record.Delete(key)},
		})
		if err != nil {
			return Token{}, err
		}
		if result.Succeeded {
			s.log.Info("bootstrap_token_revoked", "token", id)
			return token, nil
		}
	}
	return Token{}, fmt.Errorf("token %s kept changing; try again", id)
}

// tokenLabels are the labels of a token, which never change; none once it is
// gone.
func (s *Service) tokenLabels(ctx context.Context, id string) (map[string]string, error) {
	key := record.TokenKey(id)
	kv, found, _, err := s.config.Store.Get(ctx, key)
	if err != nil {
		return nil, unavailable(err, "read token "+id)
	}
	if !found {
		return nil, nil
	}
	rec, err := record.Decode[record.BootstrapToken](key, kv.Value)
	if err != nil {
		return nil, status.Errorf(codes.DataLoss, "%v", err)
	}
	return rec.Labels, nil
}

// expired reports whether a token was over at the time t. One whose time cannot
// be read is.
func expired(r record.BootstrapToken, t time.Time) bool {
	end, err := time.Parse(time.RFC3339, r.Expires)
	return err != nil || !end.After(t)
}

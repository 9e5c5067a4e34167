package enroll

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/pki"
	"github.com/musterd/muster/resource"
)

// Documents is the Service as the REST API sees it (service.Identity).
type Documents struct{ Service *Service }

// statusOf words an error of the Service for clients. What is no refusal stays
// as it is.
func statusOf(err error) error {
	var code int
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrInvalid):
		return api.Errorf(http.StatusUnprocessableEntity, "%s", strings.TrimPrefix(err.Error(), ErrInvalid.Error()+": ")) // the field first
	case errors.Is(err, ErrNotFound):
		code = http.StatusNotFound
	case errors.Is(err, ErrInUse), errors.Is(err, ErrFixed):
		code = http.StatusConflict
	case errors.Is(err, record.ErrUnknownOutcome), errors.Is(err, context.DeadlineExceeded):
		return api.Errorf(http.StatusServiceUnavailable, "the store does not answer; it may have been done: %v", err)
	default:
		return err
	}
	return api.Errorf(code, "%v", err)
}

// refusal is a status as an error; none for nil.
func refusal(status *api.Status) error {
	if status == nil {
		return nil
	}
	return status
}

// versioned is the metadata of an identity. The uid tells the identity from any other
// of the same name. Revision 0, of identities that are no keys, is no resourceVersion.
func versioned(name, uid, created string, at resource.Revision) api.ObjectMeta {
	m := api.ObjectMeta{Name: name, UID: uid, CreationTimestamp: created}
	if at != 0 {
		m.ResourceVersion = strconv.FormatInt(int64(at), 10)
	}
	return m
}

func tokenDocument(r Token) api.BootstrapToken {
	return api.BootstrapToken{
		APIVersion: api.APIVersion, Kind: api.KindBootstrapToken, Metadata: versioned(r.ID, r.ID, r.Created, r.At),
		Spec:   api.BootstrapTokenSpec{Nodes: r.Nodes, Replace: r.Replace, Labels: r.Labels},
		Status: api.BootstrapTokenStatus{Uses: r.Uses, Expires: r.Expires, Expired: expired(r.BootstrapToken, time.Now()), Creator: r.Creator},
	}
}

// PutBootstrapToken implements service.Identity.
func (d Documents) PutBootstrapToken(ctx context.Context, t *api.BootstrapToken, ttl time.Duration, creator string) (*api.BootstrapToken, error) {
	token, rec, err := d.Service.CreateToken(ctx, TokenOptions{
		Nodes: t.Spec.Nodes, TTL: ttl, Uses: t.Spec.Uses, Replace: t.Spec.Replace, Labels: t.Spec.Labels, Creator: creator,
	})
	if err != nil {
		return nil, statusOf(err)
	}
	made := tokenDocument(rec)
	made.Status.Token = token.Text()
	return &made, nil
}

// ListBootstrapTokens implements service.Identity.
func (d Documents) ListBootstrapTokens(ctx context.Context) (*api.BootstrapTokenList, error) {
	records, err := d.Service.ListTokens(ctx)
	if err != nil {
		return nil, statusOf(err)
	}
	list := &api.BootstrapTokenList{APIVersion: api.APIVersion, Kind: api.KindBootstrapToken + "List", Items: []api.BootstrapToken{}}
	for _, r := range records {
		list.Items = append(list.Items, tokenDocument(r))
	}
	return list, nil
}

// DeleteBootstrapToken implements service.Identity.
func (d Documents) DeleteBootstrapToken(ctx context.Context, id string, require api.Preconditions) (*api.BootstrapToken, error) {
	rec, err := d.Service.RevokeToken(ctx, id, func(t Token) error {
		return refusal(require.Check("bootstrap token "+id, tokenDocument(t).Metadata))
	})
	if err != nil {
		return nil, statusOf(err)
	}
	gone := tokenDocument(rec)
	return &gone, nil
}

func authorityDocument(a AuthorityStatus) api.Authority {
	return api.Authority{
		APIVersion: api.APIVersion, Kind: api.KindAuthority,
		Metadata: versioned(a.ID, a.ID, stamp(a.Certificate.NotBefore.Add(pki.Backdate)), a.At),
		Status: api.AuthorityStatus{
			Signs: a.Signs, Expires: stamp(a.Certificate.NotAfter), Nodes: a.Nodes, Pin: pki.PinOf(a.Certificate).String(),
			Certificate: string(pki.FormatPEM(pki.Bundle{a.Certificate})),
		},
	}
}

// ListAuthorities implements service.Identity.
func (d Documents) ListAuthorities(ctx context.Context) (*api.AuthorityList, error) {
	all, err := d.Service.Authorities(ctx)
	if err != nil {
		return nil, statusOf(err)
	}
	list := &api.AuthorityList{APIVersion: api.APIVersion, Kind: api.KindAuthority + "List", Items: []api.Authority{}}
	for _, a := range all {
		list.Items = append(list.Items, authorityDocument(a))
	}
	return list, nil
}

// RotateAuthority implements service.Identity.
func (d Documents) RotateAuthority(ctx context.Context) (*api.Authority, error) {
	id, err := d.Service.Rotate(ctx)
	if err != nil {
		return nil, statusOf(err)
	}
	list, err := d.ListAuthorities(ctx)
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		if list.Items[i].Metadata.Name == id {
			return &list.Items[i], nil
		}
	}
	return nil, api.Errorf(http.StatusConflict, "authority %s was made and retired again by somebody else", id)
}

// RetireAuthority implements service.Identity.
func (d Documents) RetireAuthority(ctx context.Context, id string, force bool, require api.Preconditions) error {
	return statusOf(d.Service.Retire(ctx, id, force, func(a AuthorityStatus) error {
		return refusal(require.Check("authority "+id, versioned(a.ID, a.ID, "", a.At)))
	}))
}

// CertifyOperator implements service.Identity.
func (d Documents) CertifyOperator(ctx context.Context, c *api.OperatorCertificate, ttl time.Duration, creator string) (*api.OperatorCertificate, error) {
	der, err := pki.ParseRequestPEM([]byte(c.Spec.Request))
	if err != nil {
		return nil, api.Errorf(http.StatusUnprocessableEntity, "spec.request: %v", err)
	}
	public, err := pki.ParseRequest(der)
	if err != nil {
		return nil, api.Errorf(http.StatusUnprocessableEntity, "spec.request: %v", err)
	}
	s := d.Service
	t := s.trust.Load()
	leaf, err := s.CertifyOperator(ctx, c.Metadata.Name, public, ttl, creator)
	if err != nil {
		return nil, statusOf(err)
	}
	made := *c
	made.APIVersion, made.Kind = api.APIVersion, api.KindOperatorCertificate
	made.Status = api.OperatorCertificateStatus{
		Chain: string(pki.FormatPEM(t.signer.Chain(leaf))), Authorities: string(pki.FormatPEM(t.roots)), Expires: stamp(leaf.NotAfter),
	}
	return &made, nil
}

func operatorDocument(o OperatorStatus) api.OperatorCertificate {
	return api.OperatorCertificate{
		APIVersion: api.APIVersion, Kind: api.KindOperatorCertificate, Metadata: versioned(o.Name, o.Key, o.Certified, o.At),
		Status: api.OperatorCertificateStatus{Key: o.Key, Creator: o.Creator, Expires: o.Expires, Revoked: o.Revoked, RevokedBy: o.RevokedBy},
	}
}

func operatorList(all []OperatorStatus) *api.OperatorCertificateList {
	list := &api.OperatorCertificateList{APIVersion: api.APIVersion, Kind: api.KindOperatorCertificate + "List", Items: []api.OperatorCertificate{}}
	for _, o := range all {
		list.Items = append(list.Items, operatorDocument(o))
	}
	return list
}

// ListOperators implements service.Identity.
func (d Documents) ListOperators(ctx context.Context) (*api.OperatorCertificateList, error) {
	all, err := d.Service.Operators(ctx)
	if err != nil {
		return nil, statusOf(err)
	}
	return operatorList(all), nil
}

// RevokeOperator implements service.Identity.
func (d Documents) RevokeOperator(ctx context.Context, name, by string, require api.Preconditions) (*api.OperatorCertificateList, error) {
	ended, err := d.Service.RevokeOperator(ctx, name, by, func(o OperatorStatus) error {
		return refusal(require.Check("the certificate of operator "+name+" that was changed last", operatorDocument(o).Metadata))
	})
	if err != nil {
		return nil, statusOf(err)
	}
	return operatorList(ended), nil
}

func banDocument(b Banned) api.NodeBan {
	return api.NodeBan{
		APIVersion: api.APIVersion, Kind: api.KindNodeBan, Metadata: versioned(string(b.Node), fmt.Sprintf("ban-%d", b.Generation), b.Ban.At, b.At),
		Spec: api.NodeBanSpec{Reason: b.Reason}, Status: api.NodeBanStatus{Banned: b.Banned, By: b.By, Enrolled: b.Enrolled},
	}
}

// BanNode implements service.Identity.
func (d Documents) BanNode(ctx context.Context, node, reason, by string) (*api.NodeBan, error) {
	ban, err := d.Service.Ban(ctx, resource.NodeID(node), reason, by)
	if err != nil {
		return nil, statusOf(err)
	}
	made := banDocument(ban)
	return &made, nil
}

// UnbanNode implements service.Identity.
func (d Documents) UnbanNode(ctx context.Context, node, by string, require api.Preconditions) (*api.NodeBan, error) {
	ban, err := d.Service.Unban(ctx, resource.NodeID(node), by, func(b Banned) error {
		return refusal(require.Check("the ban of node "+node, banDocument(b).Metadata))
	})
	if err != nil {
		return nil, statusOf(err)
	}
	ended := banDocument(ban)
	return &ended, nil
}

// ListBans implements service.Identity.
func (d Documents) ListBans(ctx context.Context) (*api.NodeBanList, error) {
	bans, err := d.Service.Bans(ctx)
	if err != nil {
		return nil, statusOf(err)
	}
	list := &api.NodeBanList{APIVersion: api.APIVersion, Kind: api.KindNodeBan + "List", Items: []api.NodeBan{}}
	for _, b := range bans {
		list.Items = append(list.Items, banDocument(b))
	}
	return list, nil
}

package daemon

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/access"
	"github.com/musterd/muster/coordinator/audit"
	"github.com/musterd/muster/coordinator/enroll"
	"github.com/musterd/muster/coordinator/oidc"
	"github.com/musterd/muster/coordinator/rest"
	"github.com/musterd/muster/coordinator/service"
)

// openCallers opens the proofs of callers: access tokens, the identity provider and the
// administrator's token file. A provider that is away stops nothing.
func (d *Daemon) openCallers(registry prometheus.Registerer) (err error) {
	callers := access.Authenticator{Table: d.coordinator.Rights(), Other: service.StaticToken(d.config.AdminToken.Secret())}
	if d.config.OIDC != nil {
		if d.persons, err = oidc.New(*d.config.OIDC, d.log, callers.Table.Judge); err != nil {
			return err
		}
		callers.Persons = d.persons
	}
	if d.security.enroll != nil {
		callers.Authorities = enroll.Documents{Service: d.security.enroll}
	}
	countLogins(d.persons, registry)
	d.callers = callers
	return nil
}

// login is the identity provider for clients; nil where there is none.
func (d *Daemon) login() *api.LoginMethod {
	if d.persons == nil {
		return nil
	}
	return d.persons.Login()
}

// credentials serves the tokens and the role bindings of the cluster.
func (d *Daemon) credentials() *access.Keeper {
	peers := access.Peers{Roster: d.coordinator, Reach: d.coordinator.Reach, Ask: rest.Asker(d.security.peer)}
	keeper := &access.Keeper{Store: audit.Noted(d.store), Table: d.coordinator.Rights(), Settle: peers.Settled, Logger: d.log, Reserved: oidc.DefaultPrefix}
	if d.config.OIDC != nil {
		keeper.Reserved = d.config.OIDC.NamesBegin()
	}
	if d.security.enroll != nil {
		keeper.Issuer = enroll.Documents{Service: d.security.enroll}
	}
	return keeper
}

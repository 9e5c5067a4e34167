package cluster

import (
	"context"
	"net/http"
	"os"
	"path/filepath"

	"google.golang.org/grpc"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/pki"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/rpcauth"
	"github.com/musterd/muster/sdk"
	"github.com/musterd/muster/test/programs"
)

// startTrust waits for the cluster's authority, which the coordinators make, and
// proves the test to be an operator.
func (c *Cluster) startTrust() {
	c.t.Helper()
	c.caFile = filepath.Join(c.dir, c.Coordinators[0].Name, "data", "tls", "ca.pem")
	programs.Eventually(c.t, Patience, "the authority is there", func() error {
		_, err := os.Stat(c.caFile)
		return err
	})
	c.Client = c.NewClient()
	key, err := pki.NewKey()
	if err != nil {
		c.t.Fatal(err)
	}
	request, err := pki.NewRequest(key)
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	made, err := ask(ctx, c.Client, 0, func(ctx context.Context, k *sdk.Client) (*api.OperatorCertificate, error) {
		return k.Identity().CertifyOperator(ctx, "test", string(pki.FormatRequestPEM(request)), 0)
	})
	if err != nil {
		c.t.Fatal(err)
	}
	material := rpcauth.Material{Key: key}
	if material.Chain, err = pki.ParsePEM([]byte(made.Status.Chain)); err != nil {
		c.t.Fatal(err)
	}
	if material.Roots, err = pki.ParsePEM([]byte(made.Status.Authorities)); err != nil {
		c.t.Fatal(err)
	}
	if c.operator, err = rpcauth.NewTLS(material); err != nil {
		c.t.Fatal(err)
	}
}

// admit writes a bootstrap token for one node where its agent looks for it. With
// replace the node exists, and its certificate is lost.
func (c *Cluster) admit(node resource.NodeID, replace bool) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	made, err := ask(ctx, c.Client, 0, func(ctx context.Context, k *sdk.Client) (*api.BootstrapToken, error) {
		return k.Identity().CreateToken(ctx, api.BootstrapTokenSpec{Nodes: string(node), Replace: replace})
	})
	if err != nil {
		c.t.Fatal(err)
	}
	writeFile(c.t, c.tokenFile(node), made.Status.Token+"\n")
}

func (c *Cluster) tokenFile(node resource.NodeID) string {
	return filepath.Join(c.dir, string(node), "bootstrap-token")
}

// asOperator are the options of a connection to an agent.
func (c *Cluster) asOperator(node resource.NodeID) []grpc.DialOption {
	return append(c.operator.DialOptions(rpcauth.NamedNode()), grpc.WithAuthority(string(node)))
}

// transport is a client's way to coordinators.
func (c *Cluster) transport() *http.Transport {
	trust, err := sdk.Trust(c.caFile)
	if err != nil {
		c.t.Fatal(err)
	}
	t := transport()
	t.TLSClientConfig = trust
	return t
}

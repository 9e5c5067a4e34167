package cli

import (
	"cmp"
	"errors"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/cmd/muster/internal/clicontext"
	"github.com/musterd/muster/sdk"
)

// configCommand holds the verbs of the context file. None of them talks to a
// server.
func (a *app) configCommand() *cobra.Command {
	return parent(&cobra.Command{
		Use:   "config",
		Short: "Show, choose and change contexts: the servers that muster talks to, by name",
		Long: "config keeps contexts by name: each has a server's address, a token, a namespace and the\n" +
			"authorities that the server is trusted by. The current context is used unless --context names\n" +
			"another. The file is that of MUSTER_CONTEXT, else muster/context.json in the user's config folder.",
	}, a.getContextsCommand(), a.currentContextCommand(), a.useContextCommand(), a.setContextCommand(), a.deleteContextCommand(), a.viewContextsCommand())
}

// contexts reads the file; a missing one has no contexts.
func (a *app) contexts() (clicontext.File, error) {
	path, err := clicontext.Path(a.Env)
	if err != nil {
		return clicontext.File{}, err
	}
	f, err := clicontext.Load(path)
	if errors.Is(err, fs.ErrNotExist) {
		return clicontext.File{}, nil
	}
	return f, err
}

// changeContexts changes the file.
func (a *app) changeContexts(change func(*clicontext.File) error) error {
	path, err := clicontext.Path(a.Env)
	if err != nil {
		return err
	}
	return clicontext.Update(path, change)
}

func (a *app) getContextsCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "get-contexts [NAME…]",
		Short:   "List the contexts; * marks the current one",
		Example: "  muster config get-contexts\n  muster config get-contexts -o name",
		RunE: func(_ *cobra.Command, names []string) error {
			f, err := a.contexts()
			if err != nil {
				return err
			}
			if len(names) == 0 {
				names = f.Names()
			}
			t := newTable("CURRENT", "NAME", "ADDRESS", "NAMESPACE")
			var shown []clicontext.Context
			for _, name := range names {
				c, err := f.Select(name)
				if err != nil {
					return err
				}
				mark := " "
				if name == f.Current {
					mark = "*"
				}
				t.add(mark, name, c.Addr, cmp.Or(c.Namespace, defaultNamespace))
				shown = append(shown, c)
			}
			switch {
			case a.output == "name":
				for _, name := range names {
					a.printf("%s\n", name)
				}
			case !a.isTable():
				return a.encode(masked(f))
			case len(shown) == 0:
				a.notef("no contexts: muster dev adds one, and muster config set-context NAME --addr ADDRESS\n")
			default:
				t.write(a.Stdout, "")
			}
			return nil
		},
		ValidArgsFunction: a.completeContexts,
	}
}

func (a *app) currentContextCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "current-context",
		Short: "Print the name of the current context",
		Args:  arguments(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			f, err := a.contexts()
			if err != nil {
				return err
			}
			if f.Current == "" {
				_, err := f.Select("")
				return err
			}
			a.printf("%s\n", f.Current)
			return nil
		},
	}
}

func (a *app) useContextCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "use-context NAME",
		Short:   "Choose the current context",
		Example: "  muster config use-context prod",
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			err := a.changeContexts(func(f *clicontext.File) error {
				_, err := f.Select(args[0])
				f.Current = args[0]
				return err
			})
			if err == nil {
				a.printf("Switched to context %q.\n", args[0])
			}
			return err
		},
		ValidArgsFunction: a.completeContexts,
	}
}

func (a *app) setContextCommand() *cobra.Command {
	current := false
	cmd := &cobra.Command{
		Use:   "set-context NAME | --current",
		Short: "Add a context, or change the fields that are given",
		Long: "set-context sets the fields of a context for which a flag is given: --addr, --token, -n,\n" +
			"--ca-file, --client-certificate and --client-key. An empty value removes the field. The first context becomes the current one.",
		Example: "  muster config set-context prod --addr https://head-1:8470,https://head-2:8470 --ca-file ca.pem --token \"$TOKEN\"\n" +
			"  muster config set-context --current -n ml",
		Args: arguments(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case current == (len(args) == 1):
				return usagef("want NAME or --current")
			case a.contextName != "":
				return usagef("--context %q: set-context takes the name as its argument", a.contextName)
			}
			name, changed := "", "modified"
			err := a.changeContexts(func(f *clicontext.File) error {
				if name = f.Current; !current {
					name = args[0]
				}
				if current && name == "" {
					_, err := f.Select("")
					return err
				}
				if err := clicontext.CheckName(name); err != nil {
					return usageError{err}
				}
				c, found := f.Contexts[name]
				if !found {
					changed = "created"
				}
				if err := a.setFields(cmd, &c); err != nil {
					return err
				}
				c.Dev = nil // it is a person's own from now on
				if cmd.Flags().Changed("token") {
					c.Login = nil // the token is no longer that of a login
				}
				f.Contexts[name] = c
				f.Current = cmp.Or(f.Current, name)
				return nil
			})
			if err == nil {
				a.printf("Context %q %s.\n", name, changed)
			}
			return err
		},
		ValidArgsFunction: a.completeContexts,
	}
	cmd.Flags().BoolVar(&current, "current", false, "change the current context")
	return cmd
}

// setFields takes over the fields for which a flag is given, checked as connect
// does.
func (a *app) setFields(cmd *cobra.Command, c *clicontext.Context) error {
	set := map[string]struct {
		to    *string
		value string
	}{
		"addr": {&c.Addr, strings.Join(endpoints(a.addr), ",")}, "token": {&c.Token, a.token},
		"namespace": {&c.Namespace, a.namespace}, "ca-file": {&c.CertificateAuthority, a.caFile},
		"client-certificate": {&c.ClientCertificate, a.own.CertFile}, "client-key": {&c.ClientKey, a.own.KeyFile},
	}
	for flag, f := range set {
		if cmd.Flags().Changed(flag) {
			*f.to = f.value
		}
	}
	if c.Namespace != "" && !api.IsLabel(c.Namespace) {
		return usagef("-n %q: want an RFC 1123 label (1..63 of a-z, 0-9 and '-')", c.Namespace)
	}
	for _, file := range []*string{&c.CertificateAuthority, &c.ClientCertificate, &c.ClientKey} {
		if *file == "" {
			continue
		}
		path, err := absolute(*file)
		if err != nil {
			return err
		}
		*file = path
	}
	if c.Addr == "" {
		return usagef("--addr: the context has no address")
	}
	if _, err := sdk.NewClient(sdk.Config{Endpoint: c.Addr, Token: c.Token, CAFile: c.CertificateAuthority, Certificate: sdk.Certificate{CertFile: c.ClientCertificate, KeyFile: c.ClientKey}}); err != nil {
		return err
	}
	return nil
}

func (a *app) deleteContextCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "delete-context NAME",
		Short:   "Remove a context, with its token",
		Example: "  muster config delete-context old",
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			wasCurrent := false
			err := a.changeContexts(func(f *clicontext.File) error {
				if _, err := f.Select(args[0]); err != nil {
					return err
				}
				delete(f.Contexts, args[0])
				if wasCurrent = f.Current == args[0]; wasCurrent {
					f.Current = ""
				}
				return nil
			})
			if err != nil {
				return err
			}
			a.printf("Deleted context %q.\n", args[0])
			if wasCurrent {
				a.notef("it was the current one: muster config use-context NAME chooses another\n")
			}
			return nil
		},
		ValidArgsFunction: a.completeContexts,
	}
}

func (a *app) viewContextsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "view",
		Short: "Print the context file, without the tokens",
		Args:  arguments(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			f, err := a.contexts()
			if err != nil {
				return err
			}
			if a.isTable() {
				a.output = "yaml"
			}
			return a.encode(masked(f))
		},
	}
}

// hiddenToken stands for a token.
const hiddenToken = "REDACTED"

// masked returns a file without its tokens.
func masked(f clicontext.File) clicontext.File {
	shown := clicontext.File{Current: f.Current, Contexts: map[string]clicontext.Context{}}
	for name, c := range f.Contexts {
		if c.Token != "" {
			c.Token = hiddenToken
		}
		if c.Login != nil && c.Login.RefreshToken != "" {
			login := *c.Login
			login.RefreshToken = hiddenToken
			c.Login = &login
		}
		shown.Contexts[name] = c
	}
	return shown
}

func (a *app) completeContexts(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	f, err := a.contexts()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return f.Names(), cobra.ShellCompDirectiveNoFileComp
}

// selected returns the context of --context, or the current one. found is false
// where there is no file, or none is current.
func (a *app) selected() (c clicontext.Context, found bool, err error) {
	f, err := a.contexts()
	if err != nil {
		return c, false, err
	}
	if a.contextName == "" && f.Current == "" {
		return c, false, nil
	}
	c, err = f.Select(a.contextName)
	if err != nil {
		err = usagef("--context: %w", err)
	}
	return c, err == nil, err
}

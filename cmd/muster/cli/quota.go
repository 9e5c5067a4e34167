package cli

import (
	"github.com/spf13/cobra"
)

func (a *app) quotaCommand() *cobra.Command {
	return parent(&cobra.Command{
		Use:   "quota",
		Short: "Set and show quotas, say where work stands on them, replay recordings",
		Long: "quota keeps what bounds tenants: resource quotas of namespaces, quota trees whose groups\n" +
			"borrow from each other, forests of such trees, and the bindings that say to which groups a\n" +
			"namespace's work is charged. docs/quota.md explains the model.",
	}, a.quotaApplyCommand(), a.quotaGetCommand(), a.quotaExplainCommand(), a.quotaWhatIfCommand(), a.quotaReclaimCommand(), a.quotaRenameCommand(), a.quotaModeCommand(),
		a.quotaDeleteCommand(), a.quotaReplayCommand())
}

// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package usermeta

// Row is a set of labels and annotations that are never propagated between a workload cluster and the hub.
type Row struct {
	// Owner is the tool that owns them.
	Owner string

	// Keys are the patterns that cover them; see Owned.
	Keys []string

	// Except are prefixes of keys that the row does not cover although Keys do, without their subdomains.
	Except []string

	// Why says what such a key would do on the other side.
	Why string
}

// Reserved returns metadata that is never propagated. It is the only such list; docs/claims.md shows it row by
// row.
//
// A tool belongs here if it identifies its objects by a label or an annotation when it prunes, deletes or overwrites,
// or if such a key makes a controller act on the object. Tools that only keep notes belong here too if their notes are
// about that one object. Tools that keep their state elsewhere, as Terraform does, need no row.
func Reserved() []Row { return rows }

var rows = []Row{ //nolint:gochecknoglobals // A constant.
	{
		Owner: "Crossplane", Keys: []string{"crossplane.io/*"},
		Why: "Steers Crossplane: pauses an object, names its external resource, says to which composite it belongs",
	},
	{
		Owner: "Masthead", Keys: []string{"masthead.dev/*"},
		Why: "Marks what Masthead wrote, whose it is, and who consented to what",
	},
	{
		Owner: "Kubernetes, kubectl, Kustomize and SIG projects", Keys: []string{"k8s.io/*", "x-k8s.io/*", "kubernetes.io/*"},
		Except: []string{"app.kubernetes.io"},
		Why: "About the object where it is: `kubectl.kubernetes.io/last-applied-configuration`, membership in an ApplySet or an " +
			"inventory, by which `kubectl apply --prune` and kpt delete, what Cluster API pauses or moves",
	},
	{
		Owner: "Argo CD, Argo Rollouts, Argo CD Image Updater", Keys: []string{"argoproj.io/*"},
		Why: "`argocd.argoproj.io/tracking-id` says to which application an object belongs; an application of that name prunes it. " +
			"Others delete it as a hook, or order its synchronisation",
	},
	{
		Owner: "Argo CD, Helm", Keys: []string{"app.kubernetes.io/instance"},
		Why: "Argo CD's other tracking label, and by convention the name of a Helm release. The rest of `app.kubernetes.io` travels",
	},
	{
		Owner: "Helm, Skaffold, Config Sync and others", Keys: []string{"app.kubernetes.io/managed-by"},
		Why: "Helm takes over what says `Helm`. In the hub Masthead manages the object, in a workload cluster Masthead manages the copy",
	},
	{
		Owner: "Flux", Keys: []string{"fluxcd.io/*", "fluxcd.controlplane.io/*"},
		Why: "`kustomize.toolkit.fluxcd.io/name` and `helm.toolkit.fluxcd.io/name` say which Kustomization or HelmRelease an object " +
			"belongs to; others disable its reconciliation or keep it from being pruned",
	},
	{
		Owner: "Helm", Keys: []string{"helm.sh/*"},
		Why: "`meta.helm.sh/release-name` gives the object to a release, whose uninstallation deletes it; `helm.sh/hook` and " +
			"`helm.sh/resource-policy` say when it is deleted",
	},
	{
		Owner: "kapp, kbld, kapp-controller", Keys: []string{"k14s.io/*", "carvel.dev/*"},
		Why: "`kapp.k14s.io/app` selects the objects of an app; kapp deletes those that the app does not have any more",
	},
	{
		Owner: "kpt, Config Sync", Keys: []string{"kpt.dev/*", "configmanagement.gke.io/*", "configsync.gke.io/*"},
		Why: "`configmanagement.gke.io/managed` with `configsync.gke.io/resource-id` make Config Sync manage, and delete, an object",
	},
	{
		Owner: "Rancher and Fleet", Keys: []string{"cattle.io/*"},
		Why: "`objectset.rio.cattle.io/hash` selects the objects of a set, and those that are not in it any more are deleted",
	},
	{
		Owner: "Sveltos", Keys: []string{"projectsveltos.io/*"},
		Why: "Names the profile that deployed an object; it is withdrawn with the profile",
	},
	{
		Owner: "Open Cluster Management", Keys: []string{"open-cluster-management.io/*"},
		Why: "Names the work or the subscription that an object belongs to, and selects it for backups",
	},
	{
		Owner: "Karmada", Keys: []string{"karmada.io/*"},
		Why: "Names the policy and the work that propagate an object, which delete it elsewhere",
	},
	{
		Owner: "KubeVela", Keys: []string{"oam.dev/*"},
		Why: "`app.oam.dev/name` gives an object to an application, which collects its garbage by it",
	},
	{
		Owner: "Gardener", Keys: []string{"gardener.cloud/*"},
		Why: "`resources.gardener.cloud/managed-by` and its kin give an object to a managed resource, or have it deleted",
	},
	{
		Owner: "Kluctl", Keys: []string{"kluctl.io/*"},
		Why: "`kluctl.io/discriminator` selects the objects of a deployment for pruning",
	},
	{
		Owner: "werf", Keys: []string{"werf.io/*"},
		Why: "Says how, when and by which release an object is deployed and deleted",
	},
	{
		Owner: "Timoni", Keys: []string{"timoni.sh/*"},
		Why: "Says whether an object is pruned or recreated with its instance",
	},
	{
		Owner: "Pulumi", Keys: []string{"pulumi.com/*"},
		Why: "Says how Pulumi replaces, awaits and deletes the object that it created",
	},
	{
		Owner: "Skaffold, Tilt, DevSpace, Garden", Keys: []string{"skaffold.dev/*", "tilt.dev/*", "devspace.sh/*", "garden.io/*"},
		Why: "`skaffold.dev/run-id` and its kin mark what belongs to one developer's session and is cleaned up with it",
	},
	{
		Owner: "Spinnaker, Jenkins X", Keys: []string{"spinnaker.io/*", "jenkins-x.io/*"},
		Why: "Gives an object to a pipeline; Jenkins X prunes by `gitops.jenkins-x.io/pipeline`",
	},
	{
		Owner: "Velero", Keys: []string{"velero.io/*"},
		Why: "`velero.io/restore-name` says by which restore an object was made, and is what such objects are deleted by; others leave " +
			"it out of backups",
	},
	{
		Owner: "Kyverno", Keys: []string{"kyverno.io/*"},
		Why: "`cleanup.kyverno.io/ttl` has an object deleted after a time; others say from which policy and source it was generated",
	},
	{
		Owner: "kube-janitor", Keys: []string{"janitor/ttl", "janitor/expires"},
		Why: "Has an object deleted after a time",
	},
}

// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/controllertest"
	"github.com/masthead-dev/masthead/internal/test/fakecloud"
	"github.com/masthead-dev/masthead/internal/test/importertest"
	"github.com/masthead-dev/masthead/pkg/controllers/importer"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

// deaths is how often a process is killed after the same write. If a process were killed after each write of a token
// that it obtained, no process would get any further, because the next one obtains another token. The token of a
// ServiceAccount is found in the Secret.
const deaths = 2

var errKilled = errors.New("the process was killed")

// killed is an import that is reconciled by one process after the other. Each is killed after its first write: the
// write is carried out, what the process knew is lost, and it does nothing more.
type killed struct {
	*world

	t      *testing.T
	imp    *fleetv1alpha1.ClusterImport
	starts *importer.Starts
	// client is that of every process.
	client client.WithWatch
	// most is how often a process is killed after the same write.
	most int

	// alive is the process that runs.
	alive *importer.Reconciler
	die   context.CancelFunc
	ctx   context.Context // The life of the process.
	// wrote means that the process, or core, has written since the last check.
	wrote bool
	// died is how often processes were killed, by write. made is how often each object was created.
	died, made map[string]int
	// whole is what existed when the un-import began.
	whole map[int]int
}

// TestImportSurvivesKills kills the importer after each of its writes: of the managed resources of the cluster, of its
// pools, its credentials and its network, of the reflections, the kubeconfig, the status and the finalizer; while the
// cluster is imported, while it changes, while a pool is deleted, and while it is un-imported. All objects that exist
// when it is killed are safe, however long nothing starts it again. At the end the same objects exist as without kills,
// each created once.
func TestImportSurvivesKills(t *testing.T) {
	all := modern(t)
	all.Cloud.FailOnMutation(t)
	if err := all.stopImporter(); err != nil {
		t.Fatal(err)
	}
	defer func() { all.stopImporter = importertest.RunInBackground(context.Background(), all.runImporter) }()
	// Tokens that outlive the test: on a busy machine each pass would have to renew the short ones of the other tests, and
	// there would be none in which nothing is written.
	hub := *all.Hub
	hub.Tokens = fakecloud.NewTokenEndpoint(3600)
	defer hub.Tokens.Close()
	w := &world{Hub: &hub}
	starts := importer.NewStarts(importer.Options{
		Credentials:           credentials.Options{AllowLoopback: true},
		AllowedTokenEndpoints: []string{w.Tokens.URL() + "/"}, TokenAuthorities: w.Tokens.Authority(),
	})
	for name, l := range map[string]life{
		"EKS": w.eksLife(t, "kill-eks", "cafe4568"), "AKS": w.killedAKS(t), "GKE": w.killedGKE(t), "ServiceAccount": w.killedAccount(t),
	} {
		t.Run(name, func(t *testing.T) {
			undisturbed := w.killed(t, starts, l, 0)
			undisturbed.isImported()
			want := undisturbed.shapes()
			undisturbed.unimport()

			k := w.killed(t, starts, l, deaths)
			k.isImported()
			if got := k.shapes(); !slices.Equal(got, want) {
				t.Errorf("want what there is without kills, %v, got %v", want, got)
			}
			k.changes(l)
			k.loses(l)
			k.unimport()
			for object, n := range k.made {
				if n > 1 {
					t.Errorf("%s was created %d times", object, n)
				}
			}
			total := 0
			for _, n := range k.died {
				total += n
			}
			t.Logf("%d processes were killed, after %d writes", total, len(k.died))
			if account := l.imp.Spec.HubServiceAccount(); account != "" && k.died["create token of ServiceAccount "+account] == 0 {
				t.Error("want a process killed between the token of the hub and its exchange")
			}
			if total < 3*len(want) {
				t.Errorf("only %d processes were killed, for %d objects that were made: the test proves nothing", total, len(want))
			}
		})
	}
}

// killedAKS is a cluster of AKS whose token is obtained with a service principal, and whose authority is in the Secret
// that the provider publishes.
func (w *world) killedAKS(t *testing.T) life {
	t.Helper()
	const name = "kill-aks"
	principal := fakecloud.ServicePrincipal{
		TenantID: "66666666-2222-3333-4444-555555555555", ClientID: "77777777-2222-3333-4444-555555555555", Secret: "of-who-is-killed",
	}
	w.Tokens.AddServicePrincipal(principal, w.CreateAPI(t, name, importertest.Reader).Token)
	w.Create(t, credentialsSecret(name, map[string][]byte{"secret": []byte(principal.Secret)}))
	return w.aksLife(t, name, &fleetv1alpha1.ImportKubeconfig{
		Source: fleetv1alpha1.KubeconfigSourceAzureServicePrincipal,
		Azure: &fleetv1alpha1.AzureServicePrincipal{
			TenantID: principal.TenantID, ClientID: principal.ClientID, AuthorityHost: fleetv1alpha1.HTTPSURL(w.Tokens.URL()),
			ClientSecretRef: fleetv1alpha1.SecretKeyReference{Name: name, Key: "secret"},
		},
	}, entraID)
}

// killedGKE is a cluster of GKE whose token is given in exchange for one of a ServiceAccount of the hub. A process is
// killed between the two, when it has the hub's token and has not sent it.
func (w *world) killedGKE(t *testing.T) life {
	t.Helper()
	const name, account = "kill-gke", "identity-of-who-is-killed"
	w.account(t, account, forImports("true"))
	w.grants(t, account)
	w.Tokens.AddPoolProvider(w.issuer(t), poolProvider, metav1.NamespaceDefault, account, w.CreateAPI(t, name, importertest.Reader).Token)
	return w.gkeLife(t, name, w.federated(account))
}

// killedAccount is a cluster of EKS whose kubeconfig holds a token of a ServiceAccount, which the next process finds in
// the Secret.
func (w *world) killedAccount(t *testing.T) life {
	t.Helper()
	const cluster = "cafe4569"
	l := w.eksLife(t, "kill-account", cluster)
	w.ownerMakesAccount(t)
	w.ownerAllows(t, cluster)
	l.imp.Spec.Kubeconfig = &fleetv1alpha1.ImportKubeconfig{ServiceAccountRef: new(sampleAccount)}
	return l
}

// killed creates the ClusterImport of a life.
func (w *world) killed(t *testing.T, starts *importer.Starts, l life, most int) *killed {
	t.Helper()
	imp := importertest.NewImport(l.imp.Name, *l.imp.Spec.DeepCopy())
	imp.Spec.Pause = fleetv1alpha1.ImportPauseStrict
	w.Create(t, imp)
	c, err := client.NewWithWatch(
		rights.asServiceAccount(w.Config),
		client.Options{Scheme: controllertest.Scheme(), Mapper: w.Client.RESTMapper()},
	)
	if err != nil {
		t.Fatal(err)
	}
	return &killed{
		world: w, t: t, imp: imp, starts: starts, client: interceptor.NewClient(c, writes.funcs()), most: most,
		died: map[string]int{}, made: map[string]int{},
	}
}

// start starts a process.
func (k *killed) start() {
	k.t.Helper()
	k.ctx, k.die = context.WithCancel(k.t.Context())
	var err error
	if k.alive, err = k.starts.Start(interceptor.NewClient(k.client, k.funcs(k.ctx))); err != nil {
		k.t.Fatal(err)
	}
}

// after is called after each write. It kills the process if this write has not had all its kills yet.
func (k *killed) after(verb string, dryRun bool, obj client.Object, err error) error {
	kind := obj.GetObjectKind().GroupVersionKind().Kind
	if known, unknown := k.Client.GroupVersionKindFor(obj); unknown == nil {
		kind = known.Kind
	}
	if err != nil || dryRun || strings.HasPrefix(kind, "SelfSubject") {
		return err
	}
	k.wrote = true
	object := kind + " " + obj.GetName()
	if verb == "create" {
		k.made[object]++
	}
	if write := verb + " " + object; k.died[write] < k.most {
		k.died[write]++
		k.die()
		return errKilled
	}
	return nil
}

// funcs are what a process does to the hub for as long as it lives.
func (k *killed) funcs(ctx context.Context) interceptor.Funcs {
	do := func(what func() error) error {
		if ctx.Err() != nil {
			return errKilled
		}
		return what()
	}
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, o ...client.GetOption) error {
			return do(func() error { return c.Get(ctx, key, obj, o...) })
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
			return do(func() error { return c.List(ctx, list, o...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.CreateOption) error {
			options := &client.CreateOptions{}
			options.ApplyOptions(o)
			return do(func() error { return k.after("create", len(options.DryRun) > 0, obj, c.Create(ctx, obj, o...)) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.DeleteOption) error {
			return do(func() error { return k.after("delete", false, obj, c.Delete(ctx, obj, o...)) })
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.UpdateOption) error {
			return do(func() error { return k.after("update", false, obj, c.Update(ctx, obj, o...)) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, o ...client.PatchOption) error {
			return do(func() error { return k.after("patch", false, obj, c.Patch(ctx, obj, p, o...)) })
		},
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, o ...client.ApplyOption) error {
			return do(func() error { return k.after("apply", false, applied(obj), c.Apply(ctx, obj, o...)) })
		},
		SubResourceCreate: func(ctx context.Context, c client.Client, sub string, obj, requested client.Object, o ...client.SubResourceCreateOption) error {
			return do(func() error {
				return k.after("create "+sub+" of", false, obj, c.SubResource(sub).Create(ctx, obj, requested, o...))
			})
		},
		SubResourceApply: func(ctx context.Context, c client.Client, sub string, obj runtime.ApplyConfiguration, o ...client.SubResourceApplyOption) error {
			return do(func() error {
				return k.after("apply "+sub+" of", false, applied(obj), c.SubResource(sub).Apply(ctx, obj, o...))
			})
		},
	}
}

// until runs one process after the other until a check passes and nothing is written any more.
func (k *killed) until(what string, done func() (bool, string)) {
	k.t.Helper()
	var last error
	why := ""
	for deadline := time.Now().Add(4 * time.Minute); time.Now().Before(deadline); {
		if k.alive == nil {
			k.start()
		}
		k.wrote = false
		_, last = k.alive.Reconcile(k.ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(k.imp)})
		if k.ctx.Err() != nil {
			k.alive = nil
			k.isSafe()
		}
		if k.core(); k.wrote {
			continue
		}
		var ok bool
		if ok, why = done(); ok {
			return
		}
		<-time.After(50 * time.Millisecond)
	}
	k.t.Fatalf("%s: %s; %v", what, why, last)
}

// core does what Cluster API core does to the Cluster and its MachinePools: its finalizer stays until they are no
// longer paused.
func (k *killed) core() {
	k.t.Helper()
	for _, kind := range []string{"Cluster", "MachinePool"} {
		for _, o := range k.ListLabelled(k.t, k.imp, clusterv1.GroupVersion.WithKind(kind)) {
			finalizers := []string{"core.example.org/" + strings.ToLower(kind)}
			if !o.GetDeletionTimestamp().IsZero() {
				if isPaused(&o) {
					continue
				}
				finalizers = nil
			}
			if slices.Equal(o.GetFinalizers(), finalizers) {
				continue
			}
			o.SetFinalizers(finalizers)
			if err := k.Client.Update(k.t.Context(), &o); client.IgnoreNotFound(err) != nil {
				k.t.Fatal(err)
			}
			k.wrote = true
		}
	}
}

// isPaused reports whether Cluster API leaves an object alone because of what the object itself says.
func isPaused(o *unstructured.Unstructured) bool {
	_, annotated := o.GetAnnotations()[clusterv1.PausedAnnotation]
	paused, _, _ := unstructured.NestedBool(o.Object, "spec", "paused")
	return annotated || paused
}

// The levels of what an import creates, in the order in which they are deleted.
const (
	levelKubeconfig = iota
	levelProvider
	levelCore
	levelManaged
	levels
)

func (k *killed) level(gvk schema.GroupVersionKind) int {
	switch {
	case gvk.Kind == "Secret":
		return levelKubeconfig
	case gvk.Group == clusterv1.GroupVersion.Group:
		return levelCore
	case slices.Contains(importertest.ReflectedKinds(reflection.Cloud(k.imp.Spec.Cloud())), gvk):
		return levelProvider
	default:
		return levelManaged
	}
}

// objects are all objects that the import has created and that exist.
func (k *killed) objects() []unstructured.Unstructured {
	k.t.Helper()
	cloud := reflection.Cloud(k.imp.Spec.Cloud())
	gvks := append(importertest.ReflectedKinds(cloud), corev1.SchemeGroupVersion.WithKind("Secret"))
	for _, kind := range reflection.Kinds(cloud) {
		gvks = append(gvks, k.ManagedKind(k.t, kind))
	}
	var all []unstructured.Unstructured
	for _, gvk := range gvks {
		all = append(all, k.ListLabelled(k.t, k.imp, gvk)...)
	}
	return all
}

// shapes are the kinds and the names of all these objects, without what differs from import to import.
func (k *killed) shapes() []string {
	k.t.Helper()
	var all []string
	for _, o := range k.objects() {
		name := o.GetName()
		if external := o.GetAnnotations()[reflection.ExternalNameAnnotation]; strings.HasPrefix(name, "imp-") {
			name = "" // It holds the UID of the import.
			if !strings.HasPrefix(external, "imp-") {
				name = external
			}
		}
		all = append(all, o.GetKind()+"/"+name)
	}
	slices.Sort(all)
	return all
}

// isSafe checks that no object can act on the cluster, although nothing reconciles the import.
func (k *killed) isSafe() {
	k.t.Helper()
	present, ending := map[int]int{}, map[int]bool{}
	there := map[schema.GroupVersionKind]bool{}
	for _, o := range k.objects() {
		level := k.level(o.GroupVersionKind())
		present[level]++
		ending[level] = ending[level] || !o.GetDeletionTimestamp().IsZero()
		there[o.GroupVersionKind()] = true
		identity := strings.Contains(o.GetKind(), "Identity")
		policies, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "managementPolicies")
		switch {
		case level == levelProvider && (len(o.GetFinalizers()) > 0 || !identity && !isPaused(&o)),
			level == levelCore && o.GetDeletionTimestamp().IsZero() && !isPaused(&o):
			k.t.Errorf("%s %q is not paused, or has a finalizer", o.GetKind(), o.GetName())
		case level == levelManaged && o.GetKind() != "ClusterAuth" && !slices.Equal(policies, []string{"Observe"}):
			k.t.Errorf("%s %q does not only observe: %v", o.GetKind(), o.GetName(), policies)
		}
	}
	if there[clusterv1.GroupVersion.WithKind("Cluster")] && k.whole == nil {
		for _, gvk := range importertest.ReflectedKinds(reflection.Cloud(k.imp.Spec.Cloud())) {
			pool := strings.HasSuffix(gvk.Kind, "MachinePool")
			if k.level(gvk) == levelProvider && !pool && !there[gvk] {
				k.t.Errorf("the Cluster is there before %s, which core would wait for", gvk.Kind)
			}
		}
	}
	for level := 1; level < levels && k.whole != nil; level++ {
		if present[level] == k.whole[level] && !ending[level] {
			continue
		}
		for before := range level {
			if present[before] > 0 {
				k.t.Errorf("objects of the level %d go while there are some of the level %d", level, before)
			}
		}
	}
}

// isImported imports the cluster.
func (k *killed) isImported() {
	k.t.Helper()
	k.until("the cluster is imported", func() (bool, string) {
		if err := k.Client.Get(k.t.Context(), client.ObjectKeyFromObject(k.imp), k.imp); err != nil {
			return false, err.Error()
		}
		pools := meta.FindStatusCondition(k.imp.Status.Conditions, fleetv1alpha1.ConditionNodePoolsComplete)
		complete := pools != nil && pools.Reason == fleetv1alpha1.ReasonAllPoolsShown
		access := meta.FindStatusCondition(k.imp.Status.Conditions, fleetv1alpha1.ConditionWorkloadAccess)
		accessible := access != nil && access.Reason == fleetv1alpha1.ReasonAccessReadOnly
		return complete && accessible && meta.IsStatusConditionTrue(k.imp.Status.Conditions, fleetv1alpha1.ConditionReady), fmt.Sprint(k.imp.Status.Conditions)
	})
	_, c := k.kubeconfig(k.t, k.imp)
	works(k.t, c)
}

// changes edits the cluster and one of its pools.
func (k *killed) changes(l life) {
	k.t.Helper()
	version, replicas := l.changes()
	cloud := reflection.Cloud(k.imp.Spec.Cloud())
	k.TouchManaged(k.t, k.imp, reflection.Kinds(cloud)[0])
	k.TouchManaged(k.t, k.imp, l.shownBy)
	kinds := importertest.ReflectedKinds(cloud)
	controlPlane, pool := kinds[len(kinds)-4], clusterv1.GroupVersion.WithKind("MachinePool")
	k.until("the change is reflected", func() (bool, string) {
		for _, o := range k.ListLabelled(k.t, k.imp, controlPlane) {
			if now, _, _ := unstructured.NestedString(o.Object, "spec", "version"); strings.TrimPrefix(now, "v") != version {
				return false, now
			}
		}
		sizes := []int64{}
		for _, o := range k.ListLabelled(k.t, k.imp, pool) {
			size, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
			sizes = append(sizes, size)
		}
		return slices.Contains(sizes, replicas), fmt.Sprint(sizes)
	})
}

// loses deletes the second pool.
func (k *killed) loses(l life) {
	k.t.Helper()
	before := k.shapes()
	if !l.goes() {
		k.t.Fatal("the pool was not there")
	}
	k.TouchManaged(k.t, k.imp, l.shownBy)
	gone := reflection.PoolName(k.imp.Name, l.pools[1])
	k.until("the pool is gone", func() (bool, string) {
		now := k.shapes()
		return !slices.ContainsFunc(now, func(o string) bool { return strings.HasSuffix(o, "/"+gone) }), fmt.Sprint(now)
	})
	want := slices.DeleteFunc(before, func(o string) bool { return strings.HasSuffix(o, "/"+gone) })
	now := k.shapes()
	if missing := slices.DeleteFunc(want, func(o string) bool { return slices.Contains(now, o) || strings.HasSuffix(o, "/"+l.pools[1]) }); len(missing) > 0 {
		k.t.Errorf("with the pool goes what is not of it: %v", missing)
	}
}

// unimport un-imports the cluster.
func (k *killed) unimport() {
	k.t.Helper()
	whole := map[int]int{}
	for _, o := range k.objects() {
		whole[k.level(o.GroupVersionKind())]++
	}
	if err := k.Client.Delete(k.t.Context(), k.imp); err != nil {
		k.t.Fatal(err)
	}
	k.whole = whole
	k.until("the import is gone", func() (bool, string) {
		err := k.Client.Get(k.t.Context(), client.ObjectKeyFromObject(k.imp), &fleetv1alpha1.ClusterImport{})
		left := k.shapes()
		return apierrors.IsNotFound(err), fmt.Sprint(err, left)
	})
	if left := k.shapes(); len(left) > 0 {
		k.t.Errorf("un-import leaves %v", left)
	}
	k.whole = nil
	// The garbage collector removes what the provider published, with the managed resource that owns it.
	published := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: k.imp.Namespace, Name: k.imp.Name + "-import-connection"}}
	if err := k.Client.Delete(k.t.Context(), published); client.IgnoreNotFound(err) != nil {
		k.t.Fatal(err)
	}
}

// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/agent"
	"github.com/masthead-dev/masthead/pkg/controllers/application"
	"github.com/masthead-dev/masthead/pkg/controllers/discovery"
	"github.com/masthead-dev/masthead/pkg/controllers/inventory"
	"github.com/masthead-dev/masthead/pkg/controllers/references"
	healthrules "github.com/masthead-dev/masthead/pkg/health"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
	"github.com/masthead-dev/masthead/pkg/install"
	"github.com/masthead-dev/masthead/pkg/limits"
	"github.com/masthead-dev/masthead/pkg/multicluster"
	"github.com/masthead-dev/masthead/pkg/objects"
	"github.com/masthead-dev/masthead/pkg/providers/capi"
	"github.com/masthead-dev/masthead/pkg/providers/clusterprofile"
	"github.com/masthead-dev/masthead/pkg/providers/clusterprofile/plugin"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
	"github.com/masthead-dev/masthead/pkg/providers/connection/transport"
	"github.com/masthead-dev/masthead/pkg/providers/kubeconfig"
)

// hubScheme returns a scheme of the kinds that are read and written in the hub.
func hubScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, clusterv1.AddToScheme, inventoryv1alpha1.AddToScheme, fleetv1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("cannot create the scheme of the hub: %w", err)
		}
	}
	return scheme, nil
}

// newLocalManager creates the hub's manager, with a cache that holds only kinds that a controller requested, trimmed,
// and never a Secret or a ConfigMap.
func newLocalManager(cfg *rest.Config, o Options, l leadership) (manager.Manager, error) {
	scheme, err := hubScheme()
	if err != nil {
		return nil, err
	}
	mo := manager.Options{
		Scheme: scheme,
		Cache:  cache.Options{DefaultTransform: trim, ReaderFailOnMissingInformer: true},
		Client: client.Options{Cache: &client.CacheOptions{
			DisableFor: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}},
		}},
		// Both are already served before the manager exists, see serveMetrics and health.
		Metrics:                             metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress:              "0",
		PprofBindAddress:                    o.Pprof.BindAddress,
		GracefulShutdownTimeout:             &o.GracefulShutdownTimeout.Duration,
		LeaderElection:                      o.LeaderElection.Enabled,
		LeaderElectionID:                    leaseName,
		LeaderElectionNamespace:             o.Namespace,
		LeaderElectionResourceLockInterface: l.lock,
		// The process exits right after the manager, so the lease can be released and the next leader need not wait.
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &o.LeaderElection.LeaseDuration.Duration,
		RenewDeadline:                 &o.LeaderElection.RenewDeadline.Duration,
		RetryPeriod:                   &o.LeaderElection.RetryPeriod.Duration,
		Controller:                    config.Controller{Logger: ctrl.Log},
	}
	mgr, err := manager.New(l.fenced(cfg), mo)
	if err != nil {
		return nil, fmt.Errorf("cannot create the manager: %w", err)
	}
	return mgr, nil
}

// setup wires everything. The returned manager is ready to start.
func setup(cfg *rest.Config, o Options, h *health, hub hubidentity.Hub) (mcmanager.Manager, error) {
	lead, err := newLeadership(cfg, o)
	if err != nil {
		return nil, err
	}
	local, err := newLocalManager(cfg, o, lead)
	if err != nil {
		return nil, err
	}
	sources, err := newSources(local, o)
	if err != nil {
		return nil, err
	}
	gate := multicluster.NewGate()
	memory := limits.NewBudget(int64(cmp.Or(o.MemoryBudgetMiB, unlimitedBudget/mebibyte)) * mebibyte)
	limits.RegisterMetrics(metrics.Registry, memory)
	provider, err := newProvider(local, o.Connections, gate, sources, lead, hub, memory)
	if err != nil {
		return nil, err
	}
	mgr, err := mcmanager.WithMultiCluster(local, provider)
	if err != nil {
		return nil, fmt.Errorf("cannot create the multi-cluster manager: %w", err)
	}
	if err := provider.SetupWithManager(mgr); err != nil {
		return nil, fmt.Errorf("cannot set up the connections: %w", err)
	}
	hubMemory := limits.NewBudget(memory.Capacity())
	if err := setupControllers(local, mgr, o, provider, gate, sources, hubMemory); err != nil {
		return nil, err
	}
	if err := setupImports(local, o, metrics.Registry, memory); err != nil {
		return nil, err
	}
	if err := local.Add(&readiness{health: h}); err != nil {
		return nil, fmt.Errorf("cannot set up the readiness: %w", err)
	}
	return mgr, nil
}

// setupControllers adds the controllers, none of which knows another: what they share is created here.
func setupControllers(
	local manager.Manager, mgr mcmanager.Manager, o Options, provider *connection.Provider, gate *multicluster.Gate,
	sources []connection.Source, hubMemory *limits.Budget,
) error {
	definitions := &inventory.Definitions{}
	describers := make([]connection.EnrolmentGetter, 0, len(sources))
	for _, s := range sources {
		describers = append(describers, s)
	}
	err := inventory.SetupWithManager(local, inventory.Options{
		Fleet: provider, Sources: describers, Definitions: definitions,
	})
	if err != nil {
		return fmt.Errorf("cannot set up the inventory: %w", err)
	}
	queueMetrics := multicluster.NewMetrics(metrics.Registry)
	users := &install.PolicyUsers{}
	err = agent.Setup(mgr, agent.Options{
		Fleet: provider, Gate: gate, Reporter: definitions.Report, Users: users, HubBudget: hubMemory,
		ProtectedNamespaces:     append([]string{o.Namespace}, o.Agent.ProtectedNamespaces...),
		MaxConcurrentReconciles: o.Agent.Workers,
		MaxInFlightPerCluster:   o.Agent.workersPerCluster(),
		Registerer:              metrics.Registry,
		QueueMetrics:            queueMetrics,
	})
	if err != nil {
		return fmt.Errorf("cannot set up the agent: %w", err)
	}
	err = discovery.Setup(mgr, discovery.Options{
		Fleet: provider, Gate: gate, Reporter: definitions.Report, Users: users,
		RequestTimeout: o.Connections.RequestTimeout.Duration,
		Registerer:     metrics.Registry,
		QueueMetrics:   queueMetrics,
	})
	if err != nil {
		return fmt.Errorf("cannot set up discovery: %w", err)
	}
	err = setupApplications(mgr, o, application.Options{
		Fleet: provider, Sources: describers, Gate: gate, Reporter: definitions.Report, Users: users, QueueMetrics: queueMetrics,
	})
	if err != nil {
		return err
	}
	err = references.Setup(mgr, references.Options{
		Fleet: provider, HubClass: o.References.HubClass, Gate: gate,
		Registerer: metrics.Registry, QueueMetrics: queueMetrics,
	})
	if err != nil {
		return fmt.Errorf("cannot set up references: %w", err)
	}
	return nil
}

func setupApplications(mgr mcmanager.Manager, o Options, to application.Options) (err error) {
	if o.Applications.HealthLibrary {
		if to.HealthLibrary, err = healthrules.NewLibrary(); err != nil {
			return fmt.Errorf("cannot set up the health of Applications: %w", err)
		}
	}
	to.MaxConcurrentReconciles = o.Applications.Workers
	to.RequestTimeout = o.Connections.RequestTimeout.Duration
	to.MetricsPerApplication = o.Applications.Metrics == metricsPerApplication
	to.Registerer = metrics.Registry
	if err := application.Setup(mgr, to); err != nil {
		return fmt.Errorf("cannot set up Applications: %w", err)
	}
	return nil
}

// newSources creates the sources of clusters. Each caches the metadata of only the Secrets that it needs: a manager's
// own cache has one selector per kind, so it would have to hold every Secret's.
func newSources(local manager.Manager, o Options) ([]connection.Source, error) {
	var sources []connection.Source
	if o.uses(capi.SourceName) {
		ofClusters, err := secretMetadata(local, clusterv1.ClusterNameLabel, ofKubeconfigs)
		if err != nil {
			return nil, err
		}
		fromCAPI, err := capi.New(capi.Options{
			Cached: local.GetClient(), Live: local.GetAPIReader(), SecretMetadata: ofClusters, Imports: newImportReader(local, o.Imports),
		})
		if err != nil {
			return nil, fmt.Errorf("cannot create the source of Cluster API's clusters: %w", err)
		}
		sources = append(sources, fromCAPI)
	}
	if o.uses(kubeconfig.SourceName) {
		enrolled, err := secretMetadata(local, fleetv1alpha1.EnrollLabel, nil)
		if err != nil {
			return nil, err
		}
		fromSecrets, err := kubeconfig.New(kubeconfig.Options{Live: local.GetAPIReader(), SecretMetadata: enrolled})
		if err != nil {
			return nil, fmt.Errorf("cannot create the source of enrolled Secrets: %w", err)
		}
		sources = append(sources, fromSecrets)
	}
	if o.uses(clusterprofile.SourceName) {
		fromProfiles, err := newProfileSource(local, o)
		if err != nil {
			return nil, fmt.Errorf("cannot create the source of ClusterProfiles: %w", err)
		}
		sources = append(sources, fromProfiles)
	}
	return sources, nil
}

func newProfileSource(local manager.Manager, o Options) (*clusterprofile.Source, error) {
	ofProfiles, err := secretMetadata(local, clusterprofile.ProfileLabel, nil)
	if err != nil {
		return nil, err
	}
	from := clusterprofile.Options{
		Cached: local.GetClient(), Live: local.GetAPIReader(), SecretMetadata: ofProfiles,
		Credentials: o.Connections.credentials(),
	}
	if c := o.ClusterProfiles; c.AccessConfig != "" {
		if from.Plugins, err = plugin.Load(c.AccessConfig, c.PluginNamespaces); err != nil {
			return nil, fmt.Errorf("cannot load plugins: %w", err)
		}
	}
	return clusterprofile.New(from)
}

// secretMetadata is a cache of the metadata of Secrets that have a label. A Secret that loses the label leaves the
// cache, which appears as its deletion.
func secretMetadata(local manager.Manager, label string, newInformer newInformerFunc) (cache.Cache, error) {
	labelled, err := labels.NewRequirement(label, selection.Exists, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot select Secrets by the label %q: %w", label, err)
	}
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	c, err := cache.New(local.GetConfig(), cache.Options{
		HTTPClient: local.GetHTTPClient(), Scheme: local.GetScheme(), Mapper: local.GetRESTMapper(),
		ByObject:                    map[client.Object]cache.ByObject{secret: {Label: labels.NewSelector().Add(*labelled)}},
		DefaultTransform:            onlyWhatSourcesRead,
		NewInformer:                 newInformer,
		ReaderFailOnMissingInformer: true,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot create a cache of the metadata of Secrets: %w", err)
	}
	if err := local.Add(c); err != nil {
		return nil, fmt.Errorf("cannot add a cache of the metadata of Secrets: %w", err)
	}
	return c, nil
}

func newProvider(
	local manager.Manager, o ConnectionOptions, gate *multicluster.Gate, sources []connection.Source, l leadership,
	hub hubidentity.Hub, memory *limits.Budget,
) (*connection.Provider, error) {
	provider, err := connection.New(connection.Options{
		Sources:                 sources,
		Gate:                    gate,
		Pins:                    inventory.NewPins(local.GetAPIReader()),
		RequireClass:            true,
		Hub:                     hub,
		Credentials:             o.credentials(),
		Recorder:                local.GetEventRecorder(fleetv1alpha1.FieldManager),
		Registerer:              metrics.Registry,
		MaxConcurrentReconciles: o.Workers,
		MaxPerNamespace:         o.WorkersPerNamespace,
		ProbeInterval:           o.ProbeInterval.Duration,
		ProbeTimeout:            o.ProbeTimeout.Duration,
		ProbeFailureThreshold:   o.ProbeFailures,
		UnsyncedAfter:           o.UnsyncedAfter.Duration,
		ConnectTimeout:          o.ConnectTimeout.Duration,
		BackoffBase:             o.BackoffBase.Duration,
		BackoffMax:              o.BackoffMax.Duration,
		NotReadyGracePeriod:     o.GracePeriod.Duration,
		DrainTimeout:            o.DrainTimeout.Duration,
		OffboardTimeout:         o.OffboardTimeout.Duration,
		RequestTimeout:          o.RequestTimeout.Duration,
		WrapTransport:           l.wrapper(),
		QPS:                     o.QPS,
		Burst:                   o.Burst,
		Budget:                  memory,
		Lists:                   limits.NewSemaphore[any](o.Lists, 0), // Half for one cluster: its lists may never end.
		Limits: transport.Limits{
			Object: o.answerLimits(o.MaxAnswerMiB), Event: o.answerLimits(o.MaxAnswerMiB), List: o.answerLimits(o.MaxListMiB),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("cannot create the connections: %w", err)
	}
	return provider, nil
}

// trim removes from an object what no controller reads.
func trim(in any) (any, error) {
	obj, err := meta.Accessor(in)
	if err != nil {
		return in, nil //nolint:nilerr // Not an object: a tombstone, for example.
	}
	objects.Trim(obj)
	return in, nil
}

// readiness makes the process ready once the hub's caches are synced. A replica that waits for the lease is ready, too:
// ready means that it can take over.
type readiness struct {
	health *health
}

// Start is called after the caches are synced.
func (r *readiness) Start(ctx context.Context) error {
	r.health.ready()
	<-ctx.Done()
	r.health.notReady("stopping")
	return nil
}

// NeedLeaderElection is false: see readiness.
func (r *readiness) NeedLeaderElection() bool { return false }

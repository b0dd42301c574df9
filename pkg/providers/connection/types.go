// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/source"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/dynamicclient"
	"github.com/masthead-dev/masthead/pkg/guard"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/providers/connection/lifecycle"
	"github.com/masthead-dev/masthead/pkg/providers/connection/probe"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
)

// ErrNotEnrolled is returned by an EnrolmentGetter for an object that is gone or not enrolled.
var ErrNotEnrolled = errors.New("the object is not enrolled")

// ErrNoCredentials is returned by a Source whose Secret with the kubeconfig does not exist.
var ErrNoCredentials = errors.New("no credentials")

// A Source defines which clusters to connect, and with which credentials. It never contacts them.
type Source interface {
	EnrolmentGetter

	// Kubeconfig reads the one Secret of the enrolment from the API server, so that no Secret is ever in a cache. It
	// returns ErrNoCredentials if there is none, and a *condition.Error for another problem that users are to know.
	Kubeconfig(ctx context.Context, e *Enrolment) (Kubeconfig, error)
	// Watches returns the watches on the hub that trigger the connection reconciler.
	Watches(hub cluster.Cluster) ([]source.TypedSource[Key], error)
}

// A Kubeconfig is the kubeconfig that a source read, and its location.
type Kubeconfig struct {
	// Data is the kubeconfig, untrusted.
	Data []byte
	// SecretKey is where it is, for other programs. Empty if it is nowhere as such, or must not be published.
	SecretKey
}

// A SecretKey names a value in a Secret of the hub.
type SecretKey struct {
	Namespace, Name, Key string
}

// Access describes how clients other than Masthead reach a cluster, and where in the hub its credentials are. Nothing
// in it is secret.
type Access struct {
	Endpoint credentials.Endpoint
	Secret   SecretKey
}

// ObjectReference names the enrolled object in the hub.
type ObjectReference struct {
	schema.GroupVersionKind
	Namespace, Name   string
	UID               types.UID
	CreationTimestamp metav1.Time
}

// Enrolment is a source's description of one cluster.
type Enrolment struct {
	// Object is the enrolled object. Its UID identifies the enrolment: the same name with another UID is another
	// enrolment.
	Object ObjectReference
	// Class is the name of the EnrollmentClass.
	Class string
	// Identifier is the value of the annotation for the cluster identifier, or empty.
	Identifier string
	// TakeOverFrom is the value of the annotation that consents to taking the cluster over from another hub, or empty.
	TakeOverFrom string
	// Ready reports whether the cluster is expected to respond; if not, the reason and the message explain why.
	Ready                           bool
	NotReadyReason, NotReadyMessage string
	// Paused requests that the cluster is left alone.
	Paused bool
	// Deleting means that the enrolled object has a deletion timestamp. The cluster stays engaged until the object is
	// gone.
	Deleting bool
	// Endpoint is the address known to the source, or empty. It is never dialled, only used to detect changes.
	Endpoint string
	// Secret names the Secret of the kubeconfig, for messages.
	Secret string
	// CredentialsVersion is the UID and resource version of the Secret's metadata, or what else changes when credentials
	// are to be read again; empty if there are none.
	CredentialsVersion string
}

// A State is the connection state of an enrolment.
type State = lifecycle.State

// The states of an enrolment; package lifecycle documents them and holds the state machine.
const (
	StatePending    = lifecycle.StatePending
	StateConnecting = lifecycle.StateConnecting
	StateConnected  = lifecycle.StateConnected
	StateDegraded   = lifecycle.StateDegraded
	StateBackoff    = lifecycle.StateBackoff
	StateDraining   = lifecycle.StateDraining
	StateRemoved    = lifecycle.StateRemoved
)

// Cluster is a snapshot of an enrolled cluster, passed by value.
type Cluster struct {
	// Name is the name under which the cluster is engaged.
	Name mcr.ClusterName
	// Enrolment is the source's latest description.
	Enrolment Enrolment
	// Unenrolled reports whether the source no longer has the enrolment: its object is gone or no longer enrolled. The
	// cluster stays in the fleet until it is disconnected.
	Unenrolled bool
	// State, Reason and Message describe the connection, in a form suitable for a condition.
	State           State
	Reason, Message string
	// ControlPlaneHealthy is the result of the API server's /readyz; Unknown if it could not be probed.
	ControlPlaneHealthy metav1.ConditionStatus
	// KubernetesVersion is the API server's version, for example "v1.36.3", or empty.
	KubernetesVersion string
	// UID is the UID of the cluster's namespace kube-system; empty before the first connection.
	UID string
	// Identifier is the last granted identifier, which differs from the requested one while that is refused; empty before
	// the first connection.
	Identifier string
	// Hub is this hub as owner of objects in the cluster.
	Hub hubidentity.Owner
	// Access describes how to reach the cluster, while it is engaged; nil if that cannot be published. Read-only.
	Access *Access
	// Unsynced are the kinds that controllers have watched for a while and that are not synced, sorted; set while engaged.
	Unsynced []kindwatch.Unsynced
	// Refused describes recently refused responses of the cluster, while it is engaged.
	Refused Refusal
}

// A Refusal explains why responses of a cluster were refused, in a form suitable for a condition. Empty if none were.
type Refusal struct {
	Reason, Message string
}

// EffectiveIdentifier is the identifier that the cluster uses: the granted one or, before that, the one requested by
// its enrolment or, without one, its UID.
func (c Cluster) EffectiveIdentifier() string {
	if c.Identifier != "" {
		return c.Identifier
	}
	if c.Enrolment.Identifier != "" {
		return c.Enrolment.Identifier
	}
	return c.UID
}

// Equal reports whether two snapshots are the same to a reader.
func (c Cluster) Equal(o Cluster) bool {
	return c.Name == o.Name && c.Enrolment.equal(o.Enrolment) && c.Unenrolled == o.Unenrolled && c.State == o.State && c.Reason == o.Reason &&
		c.Message == o.Message && c.ControlPlaneHealthy == o.ControlPlaneHealthy &&
		c.KubernetesVersion == o.KubernetesVersion && c.UID == o.UID && c.Identifier == o.Identifier &&
		c.Hub.Equal(o.Hub) && slices.Equal(c.Unsynced, o.Unsynced) && c.Refused == o.Refused && reflect.DeepEqual(c.Access, o.Access)
}

func (e Enrolment) equal(o Enrolment) bool {
	if !e.Object.CreationTimestamp.Equal(&o.Object.CreationTimestamp) {
		return false
	}
	e.Object.CreationTimestamp, o.Object.CreationTimestamp = metav1.Time{}, metav1.Time{}
	return e == o
}

// equalButCredentials reports whether two enrolments differ at most in the version of the Secret.
func (e Enrolment) equalButCredentials(o Enrolment) bool {
	e.CredentialsVersion = o.CredentialsVersion
	return e.equal(o)
}

// A Pin records which cluster an enrolment led to before this process started.
type Pin struct {
	// UID is the UID of the cluster's namespace kube-system.
	UID string
	// Identifier is the effective identifier.
	Identifier string
	// ObjectUID is the UID of the enrolled object at that time; a pin of another object with the same name is ignored.
	// Empty if unknown. Kind is the object's.
	ObjectUID types.UID
	Kind      schema.GroupVersionKind
	// Reason is that of the state in which it was.
	Reason string
	// Class is the class in which the enrolment had a place; empty if it had none.
	Class string
}

// valid reports whether a connection can have created the pin.
func (p Pin) valid() bool {
	return probe.ValidUID(p.UID) && (p.Identifier == "" || p.Identifier == p.UID || !probe.LikeUID(p.Identifier))
}

// enrolment returns the enrolment that led there, which its source no longer describes.
func (p Pin) enrolment(k Key) *Enrolment {
	e := &Enrolment{
		Object: ObjectReference{GroupVersionKind: p.Kind, Namespace: k.Namespace, Name: k.Name, UID: p.ObjectUID},
		Class:  p.Class, Ready: true, Secret: "Secret with the cluster's kubeconfig",
	}
	if p.Identifier != p.UID {
		e.Identifier = p.Identifier
	}
	return e
}

// Pins remembers across restarts which cluster an enrolment led to.
type Pins interface {
	// Load returns every pin. It is called once, before the first connection.
	Load(ctx context.Context) (map[mcr.ClusterName]Pin, error)
}

// Connected is implemented by the cluster.Cluster that Provider.Get returns.
type Connected interface {
	cluster.Cluster
	// Dynamic returns a client that sends every request to the API server, without a cache. Its time-out is too long to
	// end a watch, so callers set deadlines on all other requests.
	Dynamic() dynamicclient.Objects
	// Shared runs one watch per kind for all controllers that use it.
	Shared() *kindwatch.Shared
	// Guard recovers panics of code that handles the cluster's data, and ends the connection. Every such goroutine runs
	// under it.
	Guard() *guard.Guard
	// Context ends when this connection does, with the reason as its cause.
	Context() context.Context
}

// An OffboardFunc removes from a cluster what would block its users once Masthead no longer manages it. It is called
// after the cluster's work has ended and before it is disconnected. It returns when it is done, when the cluster does
// not respond, or when ctx ends, also because the cluster is enrolled again. If it fails although the cluster responds,
// it is retried a few times: nothing else cleans up what it leaves behind.
type OffboardFunc func(ctx context.Context, name mcr.ClusterName) error

// Gate controls which clusters' queued work may run; implemented by multicluster.Gate.
type Gate interface {
	Open(name mcr.ClusterName)
	Close(name mcr.ClusterName)
	Forget(name mcr.ClusterName)
	WaitIdle(ctx context.Context, name mcr.ClusterName) error
	WaitForSync(ctx context.Context, name mcr.ClusterName, cl cluster.Cluster) error
}

// Defaults of Options.
const (
	DefaultMaxConcurrentReconciles = 100
	DefaultProbeInterval           = 10 * time.Second
	DefaultProbeTimeout            = 5 * time.Second
	DefaultProbeFailureThreshold   = 5
	DefaultUnsyncedAfter           = 2 * time.Minute
	DefaultConnectTimeout          = 20 * time.Second
	DefaultBackoffBase             = time.Second
	DefaultBackoffMax              = 5 * time.Minute
	DefaultSettlePeriod            = 2 * time.Minute
	DefaultNotReadyGracePeriod     = 5 * time.Minute
	DefaultDrainTimeout            = 30 * time.Second
	DefaultOffboardTimeout         = 5 * time.Minute
	DefaultHandoverTimeout         = 30 * time.Second
	DefaultHubInterval             = 30 * time.Second
	DefaultRequestTimeout          = 10 * time.Second
	DefaultQPS                     = 1000
	DefaultBurst                   = 2000
	DefaultUserAgent               = "masthead"
)

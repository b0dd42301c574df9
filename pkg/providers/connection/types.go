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
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/source"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/guard"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/providers/connection/allocation"
	"github.com/masthead-dev/masthead/pkg/providers/connection/lifecycle"
	"github.com/masthead-dev/masthead/pkg/providers/connection/probe"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
)

// ErrNoCredentials is returned by a Source whose Secret with the kubeconfig does not exist.
var ErrNoCredentials = errors.New("no credentials")

// A Source says which clusters should be connected, and with which credentials. It never talks to them.
type Source interface {
	Describer

	// Kubeconfig reads the one Secret of the enrolment from the API server, so that no Secret is ever in a cache. It
	// returns ErrNoCredentials if there is none.
	Kubeconfig(ctx context.Context, e *Enrolment) (Kubeconfig, error)
	// Watches returns the watches on the hub that wake the connection reconciler.
	Watches(hub cluster.Cluster) ([]source.TypedSource[Key], error)
}

// A Kubeconfig is what a source read, and where.
type Kubeconfig struct {
	// Data is the kubeconfig, as somebody else wrote it.
	Data []byte
	SecretKey
}

// A SecretKey names a value in a Secret of the hub.
type SecretKey struct {
	Namespace, Name, Key string
}

// Access says how a cluster is reached by others than Masthead, and where in the hub the credentials for it are.
// Nothing in it is secret.
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

// Enrolment is what a source says about one cluster.
type Enrolment struct {
	// Object is the enrolled object. Its UID is the enrolment's identity: another UID under the same name is another
	// enrolment.
	Object ObjectReference
	// Class is the name of the EnrollmentClass.
	Class string
	// Identifier is the value of the annotation for the cluster identifier, or empty.
	Identifier string
	// TakeOverFrom is the value of the annotation that consents to taking the cluster over from another hub, or empty.
	TakeOverFrom string
	// Ready says whether the cluster can be expected to answer; if not, the reason and the message say why.
	Ready                           bool
	NotReadyReason, NotReadyMessage string
	// Paused asks for the cluster to be left alone.
	Paused bool
	// Deleting says that the enrolled object has a deletion timestamp. The cluster stays engaged until the object is gone.
	Deleting bool
	// Endpoint is the address that the source knows, or empty. It is never dialled, it only tells that something changed.
	Endpoint string
	// CredentialsVersion is the UID and resource version of the Secret's metadata; empty if there is no Secret.
	CredentialsVersion string
}

// A State is where an enrolment stands.
type State = lifecycle.State

// The states of an enrolment; package lifecycle says what they mean, and holds the machine.
const (
	StatePending    = lifecycle.StatePending
	StateConnecting = lifecycle.StateConnecting
	StateConnected  = lifecycle.StateConnected
	StateDegraded   = lifecycle.StateDegraded
	StateBackoff    = lifecycle.StateBackoff
	StateDraining   = lifecycle.StateDraining
	StateRemoved    = lifecycle.StateRemoved
)

// Cluster is what is known about an enrolled cluster: a snapshot, a value.
type Cluster struct {
	// Name is the name under which the cluster is engaged.
	Name mcr.ClusterName
	// Enrolment is what the source said last.
	Enrolment Enrolment
	// Unenrolled is whether the source says that there is no such enrolment any more: its object is gone, or is not
	// enrolled. The cluster is in the fleet until it is disconnected.
	Unenrolled bool
	// State, Reason and Message say where the connection stands, in words that can go into a condition.
	State           State
	Reason, Message string
	// ControlPlaneHealthy is what the API server says about itself on /readyz; Unknown if it could not be asked.
	ControlPlaneHealthy metav1.ConditionStatus
	// KubernetesVersion is the API server's version, for example "v1.36.3", or empty.
	KubernetesVersion string
	// UID is the UID of the cluster's namespace kube-system; empty before the first connection.
	UID string
	// Identifier is the identifier that the enrolment was granted last, which differs from what its object asks for while
	// that is refused; empty before the first connection.
	Identifier string
	// Hub is this hub as the owner of what is in the cluster.
	Hub hubidentity.Owner
	// Access says how the cluster is reached, while it is engaged; nil if that cannot be published. It must not be
	// changed.
	Access *Access
	// Unsynced are the kinds that controllers have watched for a while without their being synced, while it is engaged,
	// sorted.
	Unsynced []kindwatch.Unsynced
	// Refused says which answers of the cluster were refused lately, while it is engaged.
	Refused Refusal
}

// A Refusal says why answers of a cluster were refused, in words that can go into a condition. It is empty if none
// were.
type Refusal struct {
	Reason, Message string
}

// EffectiveIdentifier is the identifier under which the cluster acts: the one that it was granted or, before that, the
// one that its enrolment asks for or, without one, its UID.
func (c Cluster) EffectiveIdentifier() string {
	if c.Identifier != "" {
		return c.Identifier
	}
	if c.Enrolment.Identifier != "" {
		return c.Enrolment.Identifier
	}
	return c.UID
}

// Equal says whether two snapshots tell a reader the same.
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

// equalButCredentials says whether two differ in no more than the version of the Secret.
func (e Enrolment) equalButCredentials(o Enrolment) bool {
	e.CredentialsVersion = o.CredentialsVersion
	return e.equal(o)
}

// A Pin says which cluster an enrolment led to before this process started.
type Pin struct {
	// UID is the UID of the cluster's namespace kube-system.
	UID string
	// Identifier is the effective identifier.
	Identifier string
	// ObjectUID is the UID of the enrolled object at that time; a pin of another object of the same name is ignored. Empty
	// if unknown.
	ObjectUID types.UID
	// Class is the class in which the enrolment had a place; empty if it had none.
	Class string
}

// valid says whether a pin can have been made by a connection.
func (p Pin) valid() bool {
	return probe.ValidUID(p.UID) && (p.Identifier == "" || p.Identifier == p.UID || !probe.LikeUID(p.Identifier))
}

// claim is what the pin says that the enrolment holds.
func (p Pin) claim() allocation.Claim {
	return allocation.Claim{UID: p.UID, Identifier: p.Identifier, ObjectUID: p.ObjectUID}
}

// Pins remembers across restarts which cluster an enrolment led to.
type Pins interface {
	// Load returns every pin. It is called once, before the first connection is made.
	Load(ctx context.Context) (map[mcr.ClusterName]Pin, error)
}

// Connected is implemented by the cluster.Cluster that Provider.Get returns.
type Connected interface {
	cluster.Cluster
	// Dynamic returns a client that goes to the API server, and whose watches are not cut by a client's time-out: callers
	// set deadlines on requests that are not watches.
	Dynamic() dynamic.Interface
	// Shared watches the kinds that several controllers follow in the cluster, once for all of them.
	Shared() *kindwatch.Shared
	// Guard recovers panics of what handles data of the cluster, and ends the connection. Every goroutine that does runs
	// under it.
	Guard() *guard.Guard
	// Context ends when this connection does, with the reason as its cause.
	Context() context.Context
}

// An OffboardFunc undoes in a cluster what would be in the way of its users when nobody works on it any more. It is
// called between the end of the cluster's work and the end of its connection, and returns when it is done, when the
// cluster does not answer, or when ctx ends, which is also when the enrolment comes back. One that fails although the
// cluster answers is called again a few times: nobody comes back to what it leaves behind.
type OffboardFunc func(ctx context.Context, name mcr.ClusterName) error

// Gate is told which clusters' queued work may run; implemented by multicluster.Gate.
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

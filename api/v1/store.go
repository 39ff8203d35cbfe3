package v1

// StoreSpec is where archives are kept: one of its fields.
//
// +kubebuilder:validation:XValidation:rule="[has(self.volume), has(self.s3), has(self.gcs), has(self.azure)].filter(x, x).size() <= 1",message="backup.store must have only one of volume, s3, gcs and azure"
// +kubebuilder:validation:XValidation:rule="[!has(self.s3) || !has(self.s3.deletionCredentials) || !has(self.s3.credentials) || self.s3.deletionCredentials.name != self.s3.credentials.name, !has(self.gcs) || !has(self.gcs.deletionCredentials) || !has(self.gcs.credentials) || self.gcs.deletionCredentials.name != self.gcs.credentials.name, !has(self.azure) || !has(self.azure.deletionCredentials) || !has(self.azure.credentials) || self.azure.deletionCredentials.name != self.azure.credentials.name].all(x, x)",message="backup.store: deletionCredentials must name another Secret than credentials, which the instances have"
type StoreSpec struct {
	// A PersistentVolumeClaim with a small server before it: NAME-archive.
	// +optional
	Volume *VolumeStore `json:"volume,omitempty"`

	// Amazon S3, or what speaks its protocol.
	// +optional
	S3 *S3Store `json:"s3,omitempty"`

	// Google Cloud Storage.
	// +optional
	GCS *GCSStore `json:"gcs,omitempty"`

	// Azure Blob Storage.
	// +optional
	Azure *AzureStore `json:"azure,omitempty"`
}

// VolumeStore is a volume that the operator makes. It outlives the SampleDB, whatever
// deletionPolicy says: the operator never deletes it.
type VolumeStore struct {
	// The size of the volume. By default twice storage.size, and at least 10Gi. It can grow but not shrink.
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="!self.matches('[eE].*[0-9]{3}') && isQuantity(self)",message="backup.store.volume.size must be a quantity such as 20Gi"
	// +optional
	Size string `json:"size,omitempty"`

	// Its StorageClass; the cluster's default class if not given.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	StorageClassName *string `json:"storageClassName,omitempty"`
}

// S3Store is a bucket of S3.
type S3Store struct {
	// The bucket. It must exist.
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=63
	// +required
	Bucket string `json:"bucket"`

	// A folder in the bucket under which archives lie.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_./-]*$`
	// +optional
	Prefix string `json:"prefix,omitempty"`

	// The server's address with its protocol, such as https://minio.example.com:9000. Amazon's by default.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^https?://[^/]+/?$`
	// +optional
	Endpoint string `json:"endpoint,omitempty"`

	// The region.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Region string `json:"region,omitempty"`

	// Put the bucket's name into the path and not into the host's name, as most servers other than Amazon's want it.
	// +optional
	PathStyle bool `json:"pathStyle,omitempty"`

	// A Secret with accessKeyID, secretAccessKey and, if there is one, sessionToken. Where it is not given, the Pods'
	// own identity is used.
	// +optional
	Credentials *SecretReference `json:"credentials,omitempty"`

	// Credentials that may also delete, for the Pods of NAME-retention alone: an instance then can't remove backups.
	// +optional
	DeletionCredentials *SecretReference `json:"deletionCredentials,omitempty"`

	// A Secret with ca.crt: the authority of the server's certificate, if it is not a public one.
	// +optional
	CA *SecretReference `json:"ca,omitempty"`
}

// GCSStore is a bucket of Google Cloud Storage.
type GCSStore struct {
	// The bucket. It must exist.
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=222
	// +required
	Bucket string `json:"bucket"`

	// A folder in the bucket under which archives lie.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_./-]*$`
	// +optional
	Prefix string `json:"prefix,omitempty"`

	// A Secret with credentials.json: a service account's key. Where it is not given, the Pods' own identity is used.
	// +optional
	Credentials *SecretReference `json:"credentials,omitempty"`

	// Credentials that may also delete, for the Pods of NAME-retention alone: an instance then can't remove backups.
	// +optional
	DeletionCredentials *SecretReference `json:"deletionCredentials,omitempty"`
}

// AzureStore is a container of Azure Blob Storage.
type AzureStore struct {
	// The storage account.
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=24
	// +required
	Account string `json:"account"`

	// The container. It must exist.
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=63
	// +required
	Container string `json:"container"`

	// A folder in the container under which archives lie.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_./-]*$`
	// +optional
	Prefix string `json:"prefix,omitempty"`

	// The server's address, if it is not Azure's own, such as https://azurite.example.com:10000/account.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Endpoint string `json:"endpoint,omitempty"`

	// A Secret with accountKey or sasToken. Where it is not given, the Pods' own identity is used.
	// +optional
	Credentials *SecretReference `json:"credentials,omitempty"`

	// Credentials that may also delete, for the Pods of NAME-retention alone: an instance then can't remove backups.
	// +optional
	DeletionCredentials *SecretReference `json:"deletionCredentials,omitempty"`
}

// SecondStoreSpec is where a copy of an archive is kept: one of its fields. Only the Pods of NAME-copy have its
// credentials.
//
// +kubebuilder:validation:XValidation:rule="[has(self.s3), has(self.gcs), has(self.azure)].filter(x, x).size() == 1",message="backup.secondStore must have exactly one of s3, gcs and azure"
type SecondStoreSpec struct {
	// Amazon S3, or what speaks its protocol.
	// +optional
	S3 *SecondS3Store `json:"s3,omitempty"`

	// Google Cloud Storage.
	// +optional
	GCS *SecondGCSStore `json:"gcs,omitempty"`

	// Azure Blob Storage.
	// +optional
	Azure *SecondAzureStore `json:"azure,omitempty"`
}

// SecondS3Store is a bucket of S3 for a copy.
type SecondS3Store struct {
	// The bucket. It must exist.
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=63
	// +required
	Bucket string `json:"bucket"`

	// A folder in the bucket under which archives lie.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_./-]*$`
	// +optional
	Prefix string `json:"prefix,omitempty"`

	// The server's address with its protocol, such as https://minio.example.com:9000. Amazon's by default.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^https?://[^/]+/?$`
	// +optional
	Endpoint string `json:"endpoint,omitempty"`

	// The region.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Region string `json:"region,omitempty"`

	// Put the bucket's name into the path and not into the host's name, as most servers other than Amazon's want it.
	// +optional
	PathStyle bool `json:"pathStyle,omitempty"`

	// A Secret with accessKeyID, secretAccessKey and, if there is one, sessionToken. The instances do not get it.
	// +required
	Credentials SecretReference `json:"credentials"`

	// A Secret with ca.crt: the authority of the server's certificate, if it is not a public one.
	// +optional
	CA *SecretReference `json:"ca,omitempty"`
}

// SecondGCSStore is a bucket of Google Cloud Storage for a copy.
type SecondGCSStore struct {
	// The bucket. It must exist.
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=222
	// +required
	Bucket string `json:"bucket"`

	// A folder in the bucket under which archives lie.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_./-]*$`
	// +optional
	Prefix string `json:"prefix,omitempty"`

	// A Secret with credentials.json: a service account's key. The instances do not get it.
	// +required
	Credentials SecretReference `json:"credentials"`
}

// SecondAzureStore is a container of Azure Blob Storage for a copy.
type SecondAzureStore struct {
	// The storage account.
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=24
	// +required
	Account string `json:"account"`

	// The container. It must exist.
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=63
	// +required
	Container string `json:"container"`

	// A folder in the container under which archives lie.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_./-]*$`
	// +optional
	Prefix string `json:"prefix,omitempty"`

	// The server's address, if it is not Azure's own, such as https://azurite.example.com:10000/account.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Endpoint string `json:"endpoint,omitempty"`

	// A Secret with accountKey or sasToken. The instances do not get it.
	// +required
	Credentials SecretReference `json:"credentials"`
}

// Store is it as a store to read from.
func (s SecondStoreSpec) Store() (out StoreSpec) {
	switch {
	case s.S3 != nil:
		out.S3 = &S3Store{Bucket: s.S3.Bucket, Prefix: s.S3.Prefix, Endpoint: s.S3.Endpoint, Region: s.S3.Region,
			PathStyle: s.S3.PathStyle, Credentials: &s.S3.Credentials, CA: s.S3.CA}
	case s.GCS != nil:
		out.GCS = &GCSStore{Bucket: s.GCS.Bucket, Prefix: s.GCS.Prefix, Credentials: &s.GCS.Credentials}
	case s.Azure != nil:
		out.Azure = &AzureStore{Account: s.Azure.Account, Container: s.Azure.Container, Prefix: s.Azure.Prefix,
			Endpoint: s.Azure.Endpoint, Credentials: &s.Azure.Credentials}
	}
	return out
}

// SecretReference names a Secret of the same namespace.
type SecretReference struct {
	// Its name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
}

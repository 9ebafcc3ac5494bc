//! The objects of the server.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::SystemTime;

use futures_util::TryStreamExt;
use memgrove::backend::Version;
use s3s::dto::*;
use s3s::{S3, S3Request, S3Response, S3Result, s3_error};

/// One object.
#[derive(Clone)]
pub(crate) struct Kept {
    pub(crate) bytes: bytes::Bytes,
    pub(crate) kind: Option<String>,
    pub(crate) metadata: Option<Metadata>,
    pub(crate) modified: SystemTime,
}

impl Kept {
    fn tag(&self) -> ETag {
        ETag::Strong(Version::of(&self.bytes).as_str().to_owned())
    }
}

/// All objects, conditions checked under one lock.
#[derive(Clone)]
pub(crate) struct Objects {
    kept: Arc<Mutex<BTreeMap<String, Kept>>>,
    honours: bool,
}

impl Objects {
    pub(crate) fn new(honours: bool) -> Self {
        Objects { kept: Arc::default(), honours }
    }

    pub(crate) fn all(&self) -> MutexGuard<'_, BTreeMap<String, Kept>> {
        self.kept.lock().unwrap()
    }

    fn get(&self, key: &str) -> S3Result<Kept> {
        self.all().get(key).cloned().ok_or_else(|| s3_error!(NoSuchKey))
    }
}

fn check(there: Option<&Kept>, when: &PutObjectInput) -> S3Result<()> {
    match (&when.if_none_match, there) {
        (Some(ETagCondition::Any), Some(_)) => return Err(s3_error!(PreconditionFailed)),
        (Some(ETagCondition::ETag(tag)), Some(there)) if *tag == there.tag() => {
            return Err(s3_error!(PreconditionFailed));
        }
        _ => {}
    }
    match (&when.if_match, there) {
        (Some(_), None) => Err(s3_error!(NoSuchKey)),
        (Some(ETagCondition::ETag(tag)), Some(there)) if *tag != there.tag() => {
            Err(s3_error!(PreconditionFailed))
        }
        _ => Ok(()),
    }
}

#[async_trait::async_trait]
impl S3 for Objects {
    async fn put_object(&self, req: S3Request<PutObjectInput>) -> S3Result<S3Response<PutObjectOutput>> {
        let mut input = req.input;
        let body = match input.body.take() {
            None => Vec::new(),
            Some(body) => body
                .try_fold(Vec::new(), |mut whole, chunk| async move {
                    whole.extend_from_slice(&chunk);
                    Ok(whole)
                })
                .await
                .map_err(|_| s3_error!(IncompleteBody))?,
        };
        let kept = Kept {
            bytes: body.into(),
            kind: input.content_type.clone(),
            metadata: input.metadata.clone(),
            modified: SystemTime::now(),
        };
        let mut all = self.all();
        if self.honours {
            check(all.get(&input.key), &input)?;
        }
        let e_tag = Some(kept.tag());
        all.insert(input.key.clone(), kept);
        Ok(S3Response::new(PutObjectOutput { e_tag, ..Default::default() }))
    }

    async fn get_object(&self, req: S3Request<GetObjectInput>) -> S3Result<S3Response<GetObjectOutput>> {
        let kept = self.get(&req.input.key)?;
        let whole = kept.bytes.clone();
        let body = StreamingBlob::wrap(futures_util::stream::iter([Ok::<_, std::io::Error>(whole)]));
        Ok(S3Response::new(GetObjectOutput {
            content_length: Some(kept.bytes.len() as i64),
            e_tag: Some(kept.tag()),
            last_modified: Some(kept.modified.into()),
            metadata: kept.metadata,
            content_type: kept.kind,
            body: Some(body),
            ..Default::default()
        }))
    }

    async fn head_object(&self, req: S3Request<HeadObjectInput>) -> S3Result<S3Response<HeadObjectOutput>> {
        let kept = self.get(&req.input.key)?;
        Ok(S3Response::new(HeadObjectOutput {
            content_length: Some(kept.bytes.len() as i64),
            e_tag: Some(kept.tag()),
            last_modified: Some(kept.modified.into()),
            metadata: kept.metadata,
            content_type: kept.kind,
            ..Default::default()
        }))
    }

    async fn delete_object(
        &self,
        req: S3Request<DeleteObjectInput>,
    ) -> S3Result<S3Response<DeleteObjectOutput>> {
        self.all().remove(&req.input.key);
        Ok(S3Response::new(DeleteObjectOutput::default()))
    }

    async fn delete_objects(
        &self,
        req: S3Request<DeleteObjectsInput>,
    ) -> S3Result<S3Response<DeleteObjectsOutput>> {
        let mut all = self.all();
        let gone = req.input.delete.objects.into_iter().map(|object| {
            all.remove(&object.key);
            DeletedObject { key: Some(object.key), ..Default::default() }
        });
        let deleted = Some(gone.collect());
        Ok(S3Response::new(DeleteObjectsOutput { deleted, ..Default::default() }))
    }

    async fn list_objects_v2(
        &self,
        req: S3Request<ListObjectsV2Input>,
    ) -> S3Result<S3Response<ListObjectsV2Output>> {
        let input = req.input;
        let (prefix, page) = (input.prefix.unwrap_or_default(), input.max_keys.unwrap_or(1000) as usize);
        let after = input.continuation_token.or(input.start_after).unwrap_or_default();
        let all = self.all();
        let mut found = all.iter().filter(|(key, _)| key.starts_with(&prefix) && **key > after);
        let contents: Vec<Object> = found
            .by_ref()
            .take(page)
            .map(|(key, kept)| Object {
                key: Some(key.clone()),
                size: Some(kept.bytes.len() as i64),
                e_tag: Some(kept.tag()),
                last_modified: Some(kept.modified.into()),
                ..Default::default()
            })
            .collect();
        let next = found.next().and(contents.last()).and_then(|last| last.key.clone());
        Ok(S3Response::new(ListObjectsV2Output {
            is_truncated: Some(next.is_some()),
            next_continuation_token: next,
            key_count: Some(contents.len() as i32),
            contents: Some(contents),
            ..Default::default()
        }))
    }
}

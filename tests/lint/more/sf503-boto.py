# expect: SF503
import boto3
from temporalio import activity
sns = boto3.client("sns")
@activity.defn
def tell(t: str) -> None:
    sns.publish(TopicArn="x", Message=t)

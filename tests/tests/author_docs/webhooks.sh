python3 - << 'END'
import base64
from webhooks import genuine
headers = {
    "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp": "1614265330",
    "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
}
secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
assert genuine(secret, headers, b'{"test": 2432232314}')
assert not genuine(secret, headers, b'{"test": 2432232315}')
END

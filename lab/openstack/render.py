"""Fill a configuration template: stdin to stdout.

@NAME@ is replaced by the environment's value; a line @AUTHTOKEN:user@ by the
section with which a service checks its callers' tokens, and @CLIENT:user@ by
the options with which it calls another service as that user.
"""

import os
import re
import sys

CLIENT = """auth_type = password
auth_url = http://127.0.0.1:@KEYSTONE_PORT@
username = {user}
password = @PASSWORD@
project_name = service
user_domain_id = default
project_domain_id = default
region_name = RegionOne"""

AUTHTOKEN = (
    """[keystone_authtoken]
www_authenticate_uri = http://127.0.0.1:@KEYSTONE_PORT@
"""
    + CLIENT
    + """
service_token_roles = service
service_token_roles_required = true
interface = public"""
)

text = sys.stdin.read()
text = re.sub(r"@AUTHTOKEN:(\w+)@", lambda m: AUTHTOKEN.format(user=m[1]), text)
text = re.sub(r"@CLIENT:(\w+)@", lambda m: CLIENT.format(user=m[1]), text)
text = re.sub(r"@([A-Z_]+)@", lambda m: os.environ[m[1]], text)
sys.stdout.write(text)

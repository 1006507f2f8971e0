
;
x0Placeholder*
dtype0*
shape:

SinhSinhx0*
T0
#
IdentityIdentitySinh*
T0